import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { unpack } from "../../src/bundle/archive.ts";
import { compose } from "../../src/bundle/compose.ts";
import { createResumeGuard, type DecisionEvent } from "../../src/index.ts";
import { noOpa, openWorkshop } from "../bundle/support.ts";
import { bytesInUse } from "../collected.ts";
import { callOf, MCP, shipped } from "./support.ts";

// `RELOAD_SECONDS=60 npx vitest run test/reload/load.test.ts` for longer: so many seconds' reloads, one every 50 ms,
// however long a busy machine takes for them.
const SECONDS = Number(process.env.RELOAD_SECONDS ?? 2);
const RELOADS = SECONDS * 20;
/** Between them; one takes some time itself. */
const PAUSE_SECONDS = 0.025;
/** As many as have a status of their own. */
const REVISIONS = 48;

const workshop = openWorkshop();
afterAll(workshop.remove);

test("reloads under load: each decision is by one revision, none fails, and memory stays", {
	timeout: (SECONDS * 10 + 60) * 1000,
}, async () => {
	const wasm = await policies();
	const bundles = await Promise.all(
		Array.from({ length: REVISIONS }, (_, n) =>
			compose({
				data: dataOf(n),
				wasm: wasm[n % wasm.length] ?? new Uint8Array(),
				rules: [],
				tests: {},
				revision: `${n}`,
			}),
		),
	);
	let served = 0;
	const server = createServer((_, response) => {
		response.end(bundles[served++ % REVISIONS]);
	}).listen(0, "127.0.0.1");
	await once(server, "listening");
	const { port } = server.address() as AddressInfo;

	const memories = countMemories();
	const events: DecisionEvent[] = [];
	const problems: unknown[] = [];
	const guard = await createResumeGuard({
		bundle: {
			source: `http://127.0.0.1:${port}/`,
			polling: { minDelaySeconds: PAUSE_SECONDS, maxDelaySeconds: PAUSE_SECONDS },
		},
		watch: true,
		onDecision: (event) => void events.push(event),
		onFault: (fault) => problems.push(fault),
		onReloadError: (error) => problems.push(error),
	});
	let reloads = 0;
	guard.onRevision(() => reloads++);

	/** What is alive after the same work, in bytes and in Wasm memories. */
	const measure = async () => ({ bytes: await bytesInUse(), memories: memories.alive() });
	let decisions = 0;
	const decideUntil = async (count: number) => {
		while (reloads < count) {
			events.length = 0;
			guard.call(callOf("probe"));
			guard.call(callOf("which"));
			const [probe, which] = events;
			decisions += 2;
			if (probe?.revision !== which?.revision) problems.push(["two revisions in one turn", probe, which]);
			for (const event of [probe, which]) {
				const expected = expectedOf(Number(event?.revision), event === probe, wasm.length);
				if (JSON.stringify(shownBy(event)) !== JSON.stringify(expected)) problems.push([event, expected]);
			}
			await turn();
		}
	};

	try {
		await decideUntil(RELOADS / 2);
		const before = await measure();
		await decideUntil(RELOADS);
		const after = await measure();

		expect(problems.slice(0, 3)).toEqual([]);
		expect(decisions).toBeGreaterThan(10 * RELOADS);
		// The one in force, and one that is being made.
		expect(after.memories).toBeLessThanOrEqual(3);
		expect(after.bytes - before.bytes, JSON.stringify({ before, after })).toBeLessThan(8 * 1024 * 1024);
	} finally {
		guard.close();
		memories.stop();
		server.closeAllConnections();
		server.close();
	}
});

/** Two of them that say which they are, where there is OPA; else the one that is shipped. */
async function policies(): Promise<Uint8Array[]> {
	if (noOpa) return [new Uint8Array(readFileSync("src/generated/policy.wasm"))];
	return Promise.all(
		[0, 1].map(async (which) => {
			const refusal = `{"code": "custom:w${which}", "outcome": "refuse", "status": ${480 + which}}`;
			const rego = `package mcp.custom\n\nrefusal contains ${refusal} if input.tool == "which"\n`;
			const files = { "mcp/custom/custom.rego": rego };
			return (await unpack(await workshop.build({ files }))).get("policy.wasm") ?? new Uint8Array();
		}),
	);
}

// Says which revision it is at two places, of which one goes through the policy and the other through a mapping.
function dataOf(n: number): object {
	const need = { aud: [`${MCP}/other/${n}`], scope: [] };
	return { ...shipped, tools: { probe: need, which: need }, status: { audience_not_covered: 420 + n } };
}

function expectedOf(n: number, isProbe: boolean, policies: number): unknown[] {
	if (!isProbe && policies > 1) return [`custom:w${n % policies}`, 480 + (n % policies)];
	return ["audience_not_covered", 420 + n, `${MCP}/other/${n}`];
}

function shownBy(event: DecisionEvent | undefined): unknown[] {
	const { code, status, ...others } = event?.decision ?? {};
	const { required } = others as { required?: { aud?: string[] } };
	const named = required?.aud?.filter((resource) => resource.includes("/other/")) ?? [];
	return [code, status, ...named];
}

/** How many Wasm memories are alive, of those that are made from now on. */
function countMemories() {
	const { Memory } = WebAssembly;
	const made = new Set<WeakRef<WebAssembly.Memory>>();
	WebAssembly.Memory = class extends Memory {
		constructor(descriptor: WebAssembly.MemoryDescriptor) {
			super(descriptor);
			made.add(new WeakRef(this));
		}
	};
	return {
		alive() {
			for (const reference of made) if (reference.deref() === undefined) made.delete(reference);
			return made.size;
		},
		stop() {
			WebAssembly.Memory = Memory;
		},
	};
}
