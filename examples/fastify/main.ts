import { parseArgs } from "node:util";
import { startExample } from "./host.ts";

// `npm run example -- [--no-guard] [--profile P] [--replay R] [--foreign-principal F]`, on PORT (0 or unset: any).
const { values } = parseArgs({
	options: {
		guard: { type: "boolean", default: true },
		profile: { type: "string" },
		replay: { type: "string" },
		"foreign-principal": { type: "string" },
	},
	allowNegative: true,
});

const example = await startExample({
	port: Number(process.env.PORT ?? 0),
	guarded: values.guard,
	data: Object.fromEntries(
		Object.entries({
			profile: values.profile,
			replay: values.replay,
			foreign_principal: values["foreign-principal"],
		}).filter(([, value]) => value !== undefined),
	),
});
const { mcp, origin, authorizationServer } = example;
console.log(
	JSON.stringify({
		mcp,
		token: `${origin}/dev/token`,
		drop: `${origin}/dev/drop`,
		open: `${origin}/dev/open`,
		metadata: `${origin}/.well-known/oauth-protected-resource/mcp`,
		issuer: authorizationServer.issuer,
	}),
);

for (const signal of ["SIGINT", "SIGTERM"] as const) {
	process.once(signal, () => void example.close());
}
