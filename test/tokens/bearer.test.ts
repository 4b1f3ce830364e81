import { describe, expect, it } from "vitest";
import { bearerToken } from "../../src/tokens/index.ts";

describe("the token of an Authorization header", () => {
	it.each([
		["the scheme and a token", "Bearer abc.DEF-123_~+/==", "abc.DEF-123_~+/=="],
		["another case of the scheme", "bEARER abc", "abc"],
		["several spaces", "Bearer   abc", "abc"],
		["one value in a list", ["Bearer abc"], "abc"],
	])("%s", (_, header, token) => {
		expect(bearerToken(header)).toBe(token);
	});

	it.each([
		["no header", undefined],
		["no value", []],
		["an empty value", ""],
		["another scheme", "Basic YTpi"],
		["a scheme that begins like it", "BearerX abc"],
		["DPoP", "DPoP abc"],
	])("none: %s", (_, header) => {
		expect(bearerToken(header)).toBeUndefined();
	});

	it.each([
		["no token", "Bearer"],
		["an empty token", "Bearer "],
		["nothing but padding", "Bearer =="],
		["padding in the middle", "Bearer a=b"],
		["two tokens", "Bearer abc def"],
		["two credentials in one value", "Bearer abc, Bearer def"],
		["the same credentials twice", "Bearer abc,Bearer abc"],
		["another scheme first", "Basic YTpi, Bearer abc"],
		["two values", ["Bearer abc", "Bearer def"]],
		["two values, one of another scheme", ["Basic YTpi", "Bearer abc"]],
		["an auth-param", 'Bearer token="abc"'],
		["a tab", "Bearer\tabc"],
		["a newline", "Bearer abc\n"],
		["a space at the end", "Bearer abc "],
		["NUL", "Bearer abc\0"],
		["characters outside ASCII", "Bearer äbc"],
		["a quotation mark", 'Bearer "abc"'],
		["a percent sign", "Bearer abc%20"],
	])("malformed: %s", (_, header) => {
		expect(() => bearerToken(header)).toThrow(
			expect.objectContaining({
				code: "authorization_malformed",
				message: "The Authorization header is malformed",
			}),
		);
	});
});
