import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { DecisionEvent } from "../../src/index.ts";
import { createDecisionLog, type DecisionLogEvent } from "../../src/log/index.ts";
import { BOTH, FETCH, type Host, SEARCH, startHost } from "../e2e/support/host.ts";
import { type Asking, ask, idsOf, initialize, openSession, toolCall } from "../e2e/support/raw.ts";
import { KEY, memorySink } from "./support.ts";

interface Logged {
	readonly host: Host;
	readonly heard: readonly DecisionEvent[];
	/** The records since the last time. */
	next(): Promise<DecisionLogEvent[]>;
	/** All lines. */
	lines(): string[];
}

async function start(data = {}, guard = {}): Promise<Logged> {
	const sink = memorySink();
	const log = await createDecisionLog({ sinks: [sink], key: KEY });
	const heard: DecisionEvent[] = [];
	const host = await startHost({
		data,
		guard: {
			...guard,
			onDecision(event) {
				heard.push(event);
				log.record(event);
			},
		},
	});
	let seen = 0;
	return {
		host,
		heard,
		async next() {
			await log.flush();
			const entries = sink.entries.slice(seen);
			seen = sink.entries.length;
			return entries.map(({ record }) => record);
		},
		lines: () => sink.entries.map(({ json }) => json),
	};
}

interface Opened extends Logged {
	readonly token: string;
	readonly session: string;
	/** Of an event of the session that is retained. */
	readonly cursor: string;
}

async function open(logged: Logged): Promise<Opened> {
	const token = await logged.host.mint({ sub: "the-subject" });
	const session = await openSession(logged.host, token);
	const reply = await (
		await ask(logged.host, { token, session, body: toolCall(1, "search", { q: "x" }) })
	).ended();
	const [cursor = ""] = idsOf(reply);
	await logged.next();
	return { ...logged, token, session, cursor };
}

type Refusal = [
	name: string,
	refused: { moment: string; code: string; status: number },
	asking: (opened: Opened) => Asking | Promise<Asking>,
];

const list = { jsonrpc: "2.0", id: 5, method: "tools/list" };
const mint = ({ host }: Opened, claims: object) => host.mint({ sub: "the-subject", ...claims });

const refusals: Refusal[] = [
	[
		"a POST without a token",
		{ moment: "session", code: "token_missing", status: 401 },
		() => ({ body: initialize }),
	],
	[
		"a GET without a token",
		{ moment: "session", code: "token_missing", status: 401 },
		({ session }) => ({ method: "GET", session }),
	],
	[
		"a DELETE without a token",
		{ moment: "session", code: "token_missing", status: 401 },
		({ session }) => ({ method: "DELETE", session }),
	],
	[
		"a session that is not known",
		{ moment: "session", code: "session_unknown", status: 404 },
		({ token }) => ({ token, session: "0192e4a0-0000-7000-8000-000000000000", body: list }),
	],
	[
		"a resume of a session that is not known",
		{ moment: "resume", code: "session_unknown", status: 404 },
		({ token, cursor }) => ({
			method: "GET",
			token,
			session: "0192e4a0-0000-7000-8000-000000000000",
			cursor,
		}),
	],
	[
		"a GET without a session",
		{ moment: "session", code: "session_required", status: 400 },
		({ token }) => ({ method: "GET", token }),
	],
	[
		"another's token",
		{ moment: "session", code: "principal_drift", status: 403 },
		async (opened) => ({
			token: await mint(opened, { sub: "somebody-else" }),
			session: opened.session,
			body: list,
		}),
	],
	[
		"another's token at a resume",
		{ moment: "resume", code: "principal_drift", status: 403 },
		async (opened) => ({
			method: "GET",
			token: await mint(opened, { sub: "somebody-else" }),
			session: opened.session,
			cursor: opened.cursor,
		}),
	],
	[
		"another audience",
		{ moment: "session", code: "binding_drift", status: 403 },
		async (opened) => ({
			token: await mint(opened, { aud: "mcp://srv" }),
			session: opened.session,
			body: list,
		}),
	],
	[
		"a tool that is not mapped",
		{ moment: "call", code: "tool_unmapped", status: 403 },
		({ token, session }) => ({ token, session, body: toolCall(2, "no-such-tool") }),
	],
	[
		"a call that the token does not cover",
		{ moment: "call", code: "audience_not_covered", status: 403 },
		async (opened) => ({
			token: await mint(opened, { aud: SEARCH }),
			session: opened.session,
			body: toolCall(2, "fetch", { id: "a" }),
		}),
	],
	[
		"a cursor that is not known",
		{ moment: "resume", code: "cursor_unknown", status: 400 },
		({ token, session }) => ({ method: "GET", token, session, cursor: "a-cursor-of-mine" }),
	],
	[
		"a cursor that has not been issued",
		{ moment: "resume", code: "cursor_ahead", status: 400 },
		({ token, session, cursor }) => ({
			method: "GET",
			token,
			session,
			cursor: cursor.replace(/\d+$/, "9999"),
		}),
	],
];

describe("a refusal on the wire", () => {
	test.each(refusals)(
		"%s: leaves exactly one record, and that without a secret",
		async (_, refused, askingOf) => {
			const opened = await open(await start());
			const asking = await askingOf(opened);
			const reply = await (await ask(opened.host, asking)).ended();
			const { moment, code, status } = refused;
			expect(reply.status).toBe(status);

			const records = await opened.next();
			expect(records.filter(({ custom }) => custom.outcome !== "proceed")).toMatchObject([
				{
					path: `mcp/${moment}/decision`,
					revision: opened.heard.at(-1)?.revision,
					result: { code, status },
					custom: { moment, code, input: "whole" },
				},
			]);

			const secrets = [
				opened.token,
				asking.token ?? opened.token,
				opened.session,
				asking.session ?? opened.session,
				opened.cursor,
				asking.cursor ?? opened.cursor,
				"the-subject",
				"somebody-else",
			];
			for (const line of opened.lines()) {
				for (const secret of secrets) expect(line).not.toContain(secret);
				for (const part of opened.token.split(".")) expect(line).not.toContain(part);
			}
		},
	);

	test("within a batch, or after it, is one", async () => {
		const opened = await open(await start());
		const { host, session } = opened;
		const token = await mint(opened, { aud: SEARCH });
		for (let i = 0; i < 3; i++) {
			await (await ask(host, { token, session, body: toolCall(10 + i, "fetch", { id: "a" }) })).ended();
		}
		expect((await opened.next()).filter(({ custom }) => custom.outcome !== "proceed")).toHaveLength(3);
	});

	test("of a live stream that is cut when its token expires, is one", async () => {
		const opened = await open(await start({ clock_skew: 0 }));
		const { host, session } = opened;
		const token = await mint(opened, { exp: Math.ceil(Date.now() / 1000) + 1 });
		const stream = await ask(host, {
			token,
			session,
			body: toolCall(3, "fetch", { id: "a", gate: "never" }),
		});
		await stream.ended();
		const refused = (await opened.next()).filter(({ custom }) => custom.outcome !== "proceed");
		expect(refused.map(({ custom }) => `${custom.moment} ${custom.code}`)).toEqual(["session token_expired"]);
	});
});

test("what proceeds is recorded, too, and a resume says what was sent", async () => {
	const opened = await open(await start());
	const { host, token, session, cursor } = opened;
	await (await ask(host, { method: "GET", token, session, cursor })).ended();
	const [resume] = (await opened.next()).filter(({ custom }) => custom.moment === "resume");
	expect(resume).toMatchObject({
		result: { outcome: "proceed", code: "covered" },
		input: { presented: { aud: [BOTH], client_id: "desktop" }, pending: { needs: expect.any(Array) } },
	});
	expect(JSON.stringify(resume)).not.toContain(FETCH);
});

test("a listener that throws refuses nobody", async () => {
	vi.spyOn(console, "error").mockImplementation(() => {});
	onTestFinished(() => void vi.restoreAllMocks());
	const host = await startHost({
		guard: {
			onDecision() {
				throw new Error("no");
			},
		},
	});
	await openSession(host, await host.mint());
});
