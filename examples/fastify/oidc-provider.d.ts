// Parts of oidc-provider that its types know by the package's index only.

declare module "oidc-provider/lib/provider.js" {
	export { Provider } from "oidc-provider";
}

declare module "oidc-provider/lib/helpers/errors.js" {
	import { errors } from "oidc-provider";
	export const InvalidTarget: typeof errors.InvalidTarget;
}

declare module "oidc-provider/lib/adapters/memory_adapter.js" {
	import type { AdapterFactory } from "oidc-provider";
	export function createMemoryAdapter(): AdapterFactory;
}
