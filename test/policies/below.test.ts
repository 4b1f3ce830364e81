import { describe, expect, it } from "vitest";
import { validateData } from "../../src/generated/validators.js";
import { createResumeGuard } from "../../src/index.ts";
import { ownResources } from "../../src/resources.ts";
import table from "../resources/below.json" with { type: "json" };
import { ask } from "../tables/run.ts";

const AGGREGATE = "https://aggregate.example";
const principal = { iss: "https://as.example", sub: "alice", scope: [] };

function dataOf(entry: string) {
	return { resources: [AGGREGATE], coverage: { [AGGREGATE]: [entry] } };
}

const entries = [...new Set(table.map(({ entry }) => entry))].filter((entry) => validateData(dataOf(entry)));

describe("the policy and the token verifier agree on what lies below", () => {
	it.each(entries)("%s", async (entry) => {
		const guard = await createResumeGuard({ data: dataOf(entry) });
		const isOwn = ownResources(guard.data);
		for (const { resource, why } of table) {
			const question = {
				now: 1,
				request: { method: "POST", transport: "streamable-http", session: "none" },
				presented: { ...principal, aud: AGGREGATE, exp: 2 },
				event: { aud: [resource], scope: [] },
			};
			const { outcome } = ask(guard, "delivery", question);
			// Not covered and not one's own: there is no token to ask for.
			const expected = isOwn(resource) ? "proceed" : "reissue";
			expect(outcome, `${why}: ${JSON.stringify(resource)}`).toBe(
				resource.isWellFormed() ? expected : "refuse",
			);
		}
	});
});
