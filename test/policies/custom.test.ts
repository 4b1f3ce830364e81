import { describe, expect, it } from "vitest";
import { buildWasm } from "../../scripts/build-wasm.ts";
import { findOpa } from "../../scripts/opa.ts";
import {
	createResumeGuard,
	type Decision,
	type Moment,
	type PolicyData,
	type PolicyFault,
} from "../../src/index.ts";
import { ask } from "../tables/run.ts";
import { inTemporaryFolder } from "../temporary.ts";

const noOpa = await findOpa({ exact: true }).then(
	() => false,
	() => true,
);

const DATA = "policies/mcp/data.json";
const OPENED = 1_796_000_000;
const HOUR = 3600;
const claims = {
	iss: "https://as.example.com",
	sub: "alice",
	client_id: "desktop",
	aud: ["https://mcp.example.com"],
	scope: [],
};

/** A question of each moment, asked so long after the session was opened. */
function asked(moment: Moment, age: number): Record<string, unknown> {
	const label = { tool: "search", aud: ["https://mcp.example.com/tools/search"], scope: [] };
	const about = {
		session: { rpc: "ping" },
		call: { tool: "search" },
		resume: { cursor: { last_event_id: "41", position: "retained" }, pending: [{ id: "42", ...label }] },
		delivery: { event: label },
	};
	return {
		now: OPENED + age,
		request: { method: moment === "resume" ? "GET" : "POST", transport: "streamable-http", session: "known" },
		session: { binding: claims, transport: "streamable-http", opened_at: OPENED },
		presented: { ...claims, exp: OPENED + age + 60 },
		...about[moment],
	};
}

/** A guard whose policy has these rules of the operator's own beside the packaged ones. */
async function guardWith(rules: string, data: PolicyData | string = DATA) {
	const options = [
		"--capabilities",
		"tools/capabilities.json",
		"--ignore",
		"*_test.rego",
		"--ignore",
		"data.json",
	];
	const files = [{ path: "own.rego", content: `package mcp.custom\n\n${rules}\n` }];
	const policy = await inTemporaryFolder(files, (folder) => buildWasm([...options, "policies", folder]));
	const faults: PolicyFault[] = [];
	const guard = await createResumeGuard({ policy, data, onFault: (fault) => faults.push(fault) });
	return {
		decide: (moment: Moment, age: number): Decision => ask(guard, moment, asked(moment, age)),
		faults,
	};
}

describe.skipIf(noOpa)("needs OPA: a refusal of the operator's own", () => {
	it("sessions older than 8 h re-initialize, and nothing else changes", async () => {
		const { decide, faults } = await guardWith(`
			refusal contains {"code": "custom:session_too_old", "outcome": "reinitialize", "session": "end"} if {
				input.now - input.session.opened_at > (8 * 60) * 60
			}`);
		for (const moment of ["session", "call", "resume", "delivery"] as const) {
			expect(decide(moment, 8 * HOUR)).toMatchObject({ outcome: "proceed", code: "covered" });
		}
		const refused = {
			outcome: "reinitialize",
			code: "custom:session_too_old",
			drift: [],
			session: "end",
			status: 403,
		};
		expect(decide("session", 8 * HOUR + 1)).toEqual(refused);
		expect(decide("call", 8 * HOUR + 1)).toEqual(refused);
		expect(decide("resume", 8 * HOUR + 1)).toEqual({ ...refused, deliver: 0, cursor: "41" });
		expect(decide("delivery", 8 * HOUR + 1)).toMatchObject({ outcome: "proceed" });
		expect(faults).toEqual([]);
	});

	it("may ask for a new token, keep the session, and name its status, which data may change", async () => {
		const rules = `refusal contains {"code": "custom:maintenance", "outcome": "reauthenticate", "status": 503}`;
		const { decide } = await guardWith(rules);
		const refused = {
			outcome: "reauthenticate",
			code: "custom:maintenance",
			drift: [],
			session: "keep",
			status: 503,
		};
		expect(decide("call", 0)).toEqual(refused);

		const data = { resources: ["https://mcp.example.com"], status: { "custom:maintenance": 429 } };
		expect((await guardWith(rules, data)).decide("call", 0)).toEqual({ ...refused, status: 429 });
	});

	it.each([
		["lets somebody in", `{"code": "custom:vip", "outcome": "proceed"}`],
		["asks for another audience", `{"code": "custom:vip", "outcome": "reauthorize"}`],
		["has a code of nobody's", `{"code": "closed", "outcome": "refuse"}`],
		["has a code that is not well formed", `{"code": "custom:Closed!", "outcome": "refuse"}`],
		["is a success", `{"code": "custom:closed", "outcome": "refuse", "status": 200}`],
		["is a redirect", `{"code": "custom:closed", "outcome": "refuse", "status": 307}`],
		[
			"does something else to the session",
			`{"code": "custom:closed", "outcome": "refuse", "session": "pause"}`,
		],
	])("is no pass and no answer where it %s", async (_, answer) => {
		const { decide, faults } = await guardWith(`refusal contains ${answer}`);
		for (const moment of ["session", "call", "resume"] as const) {
			expect(decide(moment, 0)).toMatchObject({
				outcome: "refuse",
				code: "policy_fault",
				status: 503,
				session: "keep",
			});
		}
		expect(faults.map(({ moment }) => moment)).toEqual(["session", "call", "resume"]);
	});

	it.each([
		["says nothing of what happens next", `{"code": "custom:closed"}`],
		["is text", `"closed"`],
	])("is no pass where it %s", async (_, answer) => {
		const { decide } = await guardWith(`refusal contains ${answer}`);
		for (const moment of ["session", "call", "resume"] as const) {
			expect(decide(moment, 0)).toMatchObject({ outcome: "refuse", session: "keep" });
		}
	});
});
