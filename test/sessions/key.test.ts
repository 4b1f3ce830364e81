import { expect, test } from "vitest";
import { principalOf, sessionKey } from "../../src/sessions/key.ts";

test("a session key is the SHA-256 of the id, base64url", () => {
	expect(sessionKey("abc")).toBe("ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0");
});

test.each([
	[{ anonymous: true as const }, "anonymous"],
	[{ iss: "i", sub: "s", client_id: "c", aud: ["a"], scope: ["x"] }, '["i","s","c"]'],
	[{ iss: "i", sub: "s" }, '["i","s",null]'],
])("the principal of %j", (binding, principal) => {
	expect(principalOf(binding)).toBe(principal);
});
