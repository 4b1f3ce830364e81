import { describe, expect, it } from "vitest";
import { bearerToken, tokenCredentials } from "../../src/tokens/index.ts";

describe.each(["Bearer", "DPoP"] as const)("%s credentials", (scheme) => {
	it.each([
		["the scheme and a token", `${scheme} abc.DEF-123_~+/==`, "abc.DEF-123_~+/=="],
		["the scheme in lower case", `${scheme.toLowerCase()} abc`, "abc"],
		["the scheme in upper case", `${scheme.toUpperCase()} abc`, "abc"],
		["several spaces", `${scheme}   abc`, "abc"],
		["one value in a list", [`${scheme} abc`], "abc"],
	])("%s", (_, header, token) => {
		expect(tokenCredentials(header)).toEqual({ scheme, token });
		expect(bearerToken(header)).toBe(scheme === "Bearer" ? token : undefined);
	});

	it.each([
		["no header", undefined],
		["no value", []],
		["an empty value", ""],
		["another scheme", "Basic YTpi"],
		["a scheme that begins like it", `${scheme}X abc`],
	])("none: %s", (_, header) => {
		expect(tokenCredentials(header)).toBeUndefined();
		expect(bearerToken(header)).toBeUndefined();
	});

	it.each([
		["no token", scheme],
		["an empty token", `${scheme} `],
		["nothing but padding", `${scheme} ==`],
		["padding in the middle", `${scheme} a=b`],
		["two tokens", `${scheme} abc def`],
		["two credentials in one value", `${scheme} abc, ${scheme} def`],
		["the same credentials twice", `${scheme} abc,${scheme} abc`],
		["credentials of both schemes", "Bearer abc, DPoP abc"],
		["another scheme first", `Basic YTpi, ${scheme} abc`],
		["two values", [`${scheme} abc`, `${scheme} def`]],
		["a value of each scheme", ["DPoP abc", "Bearer abc"]],
		["two values, one of another scheme", ["Basic YTpi", `${scheme} abc`]],
		["an auth-param", `${scheme} token="abc"`],
		["a tab", `${scheme}\tabc`],
		["a newline", `${scheme} abc\n`],
		["a space at the end", `${scheme} abc `],
		["NUL", `${scheme} abc\0`],
		["characters outside ASCII", `${scheme} äbc`],
		["a quotation mark", `${scheme} "abc"`],
		["a percent sign", `${scheme} abc%20`],
	])("malformed: %s", (_, header) => {
		for (const read of [tokenCredentials, bearerToken]) {
			expect(() => read(header)).toThrow(
				expect.objectContaining({
					code: "authorization_malformed",
					message: "The Authorization header is malformed",
				}),
			);
		}
	});
});
