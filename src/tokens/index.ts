export { bearerToken } from "./bearer.ts";
export type { TokenDeviations } from "./claims.ts";
export {
	createTokenVerifier,
	type TokenClaims,
	type TokenRequest,
	type TokenVerifier,
	type TokenVerifierOptions,
} from "./verifier.ts";
