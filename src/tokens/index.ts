export type { TokenDeviations } from "./claims.ts";
export { bearerToken, type TokenCredentials, tokenCredentials } from "./credentials.ts";
export type { DpopOptions } from "./dpop.ts";
export { ASYMMETRIC as proofAlgorithms, type TokenClaims } from "./jwt.ts";
export type { TokenRequest, TokenScheme } from "./request.ts";
export {
	createTokenVerifier,
	type TokenVerifier,
	type TokenVerifierOptions,
} from "./verifier.ts";
