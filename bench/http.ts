import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { execPath } from "node:process";
import { createInterface } from "node:readline";
import autocannon from "autocannon";
import { build } from "esbuild";

/** One host in a process of its own, with a session and what a request needs. */
interface Host {
	readonly process: ChildProcess;
	readonly mcp: string;
	readonly token: string;
	readonly sessions: readonly string[];
}

const PAIRS = 12;
const SECONDS = 2;
const CONNECTIONS = 8;
const TARGET = 0.95;
/** Beside the packages that it imports. */
const HOST = "node_modules/.cache/mcp-resume-guard/host.mjs";
const headersFor = (token: string) => ({
	authorization: `Bearer ${token}`,
	accept: "application/json, text/event-stream",
	"content-type": "application/json",
	"mcp-protocol-version": "2025-11-25",
});

/** A call of a tool, the same for both hosts. */
interface Load {
	readonly name: string;
	readonly tool: string;
	readonly args: object;
}

const NOTHING: Load = { name: "a tool that does nothing", tool: "fetch", args: { id: "1" } };
const WAITING: Load = {
	name: "a tool that waits for 10 ms",
	tool: "slow",
	args: { steps: 1, milliseconds: 10 },
};

/**
 * Requests per second of the guarded Fastify host, over the same host that verifies tokens and stores events but has no
 * guard: tools/call on open sessions, in interleaved pairs. The host without the guard is on the MCP SDK's transport; the
 * guarded one on the guard's own, and on the SDK's.
 */
export async function compareHosts(): Promise<string> {
	// As JavaScript, which is what a host runs: tsx names every closure when it is made.
	await build({
		entryPoints: ["examples/fastify/main.ts"],
		outfile: HOST,
		bundle: true,
		packages: "external",
		platform: "node",
		target: "node20",
		format: "esm",
	});
	const guarded = await start([]);
	const onSdk = await start(["--sdk-transport"]);
	const unguarded = await start(["--no-guard"]);
	try {
		const reports = [
			await compareUnder(NOTHING, "the guard's transport", guarded, unguarded),
			await compareUnder(WAITING, "the guard's transport", guarded, unguarded),
			await compareUnder(NOTHING, "the SDK's transport", onSdk, unguarded),
		];
		return reports.join("\n\n");
	} finally {
		for (const { process } of [guarded, onSdk, unguarded]) process.kill();
	}
}

async function compareUnder(load: Load, transport: string, guarded: Host, unguarded: Host): Promise<string> {
	for (const host of [guarded, unguarded]) await requestsPerSecond(host, load);
	const pairs: Pair[] = [];
	for (let pair = 0; pair < PAIRS; pair++) {
		// Whichever goes first has the machine in another state than the other.
		const order = pair % 2 === 0 ? [guarded, unguarded] : [unguarded, guarded];
		const rates = new Map<Host, number>();
		for (const host of order) rates.set(host, await requestsPerSecond(host, load));
		pairs.push({ guarded: rates.get(guarded) ?? 0, unguarded: rates.get(unguarded) ?? 0 });
	}
	return report(load, transport, pairs);
}

async function start(flags: readonly string[]): Promise<Host> {
	const process = spawn(execPath, [HOST, ...flags], { stdio: ["ignore", "pipe", "inherit"] });
	const [line] = await once(createInterface(process.stdout), "line");
	const { mcp, token: door } = JSON.parse(line) as { mcp: string; token: string };
	const claims = { sub: "alice", client_id: "bench", aud: "https://mcp.example.com" };
	const minted = await fetch(door, {
		method: "POST",
		headers: { "content-type": "application/json" },
		body: JSON.stringify(claims),
	});
	const { access_token: token } = (await minted.json()) as { access_token: string };
	const sessions = await Promise.all(Array.from({ length: CONNECTIONS }, () => open(mcp, token)));
	return { process, mcp, token, sessions };
}

async function open(mcp: string, token: string): Promise<string> {
	const params = {
		protocolVersion: "2025-11-25",
		capabilities: {},
		clientInfo: { name: "bench", version: "1.0.0" },
	};
	const response = await fetch(mcp, {
		method: "POST",
		headers: headersFor(token),
		body: JSON.stringify({ jsonrpc: "2.0", id: 0, method: "initialize", params }),
	});
	await response.text();
	return response.headers.get("mcp-session-id") ?? "";
}

let id = 0;

async function requestsPerSecond({ mcp, token, sessions }: Host, { tool, args }: Load): Promise<number> {
	const result = await autocannon({
		url: mcp,
		connections: CONNECTIONS,
		duration: SECONDS,
		requests: [
			{
				method: "POST",
				headers: headersFor(token),
				setupRequest: (request) => {
					id += 1;
					const call = {
						jsonrpc: "2.0",
						id,
						method: "tools/call",
						params: { name: tool, arguments: args },
					};
					const session = sessions[id % sessions.length] ?? "";
					const headers = { ...request.headers, "mcp-session-id": session };
					return { ...request, headers, body: JSON.stringify(call) };
				},
			},
		],
	});
	if (result.non2xx > 0 || result.errors > 0)
		throw new Error(`${result.non2xx} refusals, ${result.errors} errors`);
	return result.requests.average;
}

interface Pair {
	readonly guarded: number;
	readonly unguarded: number;
}

function report({ name }: Load, transport: string, pairs: readonly Pair[]): string {
	const ratios = sorted(pairs.map(({ guarded, unguarded }) => guarded / unguarded));
	const [low, high] = medianInterval(ratios);
	const ratio = median(ratios);
	const rate = (name: "guarded" | "unguarded") => Math.round(median(sorted(pairs.map((pair) => pair[name]))));
	const cost = median(sorted(pairs.map((pair) => 1e6 / pair.guarded - 1e6 / pair.unguarded)));
	return [
		`Fastify on ${transport}, tools/call of ${name}: ${rate("guarded")} requests/s guarded, ${rate("unguarded")} requests/s unguarded`,
		`${Math.round(cost)} µs a request more`,
		`ratio ${ratio.toFixed(3)} (median of ${pairs.length} interleaved pairs; 95 % interval ${low.toFixed(3)}–${high.toFixed(3)})`,
		`target ≥ ${TARGET}: ${ratio >= TARGET ? "ok" : "NOT ok"}`,
	].join("\n");
}

function sorted(values: readonly number[]): number[] {
	return [...values].sort((a, b) => a - b);
}

function median(values: readonly number[]): number {
	const middle = (values.length - 1) / 2;
	return ((values[Math.floor(middle)] ?? 0) + (values[Math.ceil(middle)] ?? 0)) / 2;
}

/** Of the median, without an assumption about the distribution: the order statistics of the sign test. */
function medianInterval(values: readonly number[]): [number, number] {
	const n = values.length;
	const rank = Math.max(0, Math.floor(n / 2 - (1.96 * Math.sqrt(n)) / 2));
	return [values[rank] ?? 0, values[n - 1 - rank] ?? 0];
}
