import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { type Met, runClient, type Tokens } from "./client.ts";
import type { Held } from "./host.ts";

// `npm run soak -- [--minutes N] [--clients N] [--seed N] [--sdk-transport]`: many clients of one host call, drop, resume with one token
// or another, and end sessions, while the policy data is edited under them. Nothing may be lost, refused without a
// reason, or left over.

const { values } = parseArgs({
	options: {
		minutes: { type: "string", default: "60" },
		clients: { type: "string", default: "12" },
		seed: { type: "string", default: "1" },
		"sdk-transport": { type: "boolean", default: false },
	},
});
const SERVER = "https://mcp.example.com";
const RELOAD_EVERY = 500;
/** Bytes that the heap may differ by from the middle to the end. */
const HEAP_MAY_GROW = 8 * 1024 * 1024;

const folder = await mkdtemp(join(tmpdir(), "soak-"));
const dataFile = join(folder, "data.json");
const transport = values["sdk-transport"] ? "sdk" : "own";
const host = fork("scripts/soak/host.ts", [dataFile, transport], {
	execArgv: ["--expose-gc", "--import", "tsx"],
});
try {
	process.exitCode = (await soak()) ? 0 : 1;
} finally {
	if (host.connected) host.send("close");
	if (host.exitCode === null) await Promise.race([once(host, "exit"), sleep(5_000)]);
	host.kill();
	await rm(folder, { recursive: true });
}

async function soak(): Promise<boolean> {
	const [{ mcp, origin }] = (await once(host, "message")) as [{ mcp: string; origin: string }];
	const started = Date.now();
	const half = started + Number(values.minutes) * 30_000;
	const met: Met = { counts: new Map(), unexplained: [] };
	const clients = Array.from({ length: Number(values.clients) }, (_, index) => index);
	const stopReloading = reloadAgainAndAgain();

	const play = async (until: number, seed: number) => {
		await Promise.all(
			clients.map(async (index) =>
				runClient(mcp, await mintFor(origin, index), generator(seed * 1_000 + index), until, met),
			),
		);
		// What was dropped is noticed, idle connections are closed, old events go.
		await sleep(2_000);
	};
	await play(half, Number(values.seed));
	const middle = await measure();
	await play(half + Number(values.minutes) * 30_000, Number(values.seed) + 1);
	const reloads = await stopReloading();
	const end = await measure();
	return report(met, middle, end, reloads, (Date.now() - started) / 60_000);
}

async function measure(): Promise<Held> {
	host.send("measure");
	const [held] = (await once(host, "message")) as [Held];
	return held;
}

/** Edits the data as people do, one file put in another's place; resolves with how many revisions there were. */
function reloadAgainAndAgain(): () => Promise<number> {
	let isStopped = false;
	let edits = 0;
	const editing = (async () => {
		const data = JSON.parse(await readFile(dataFile, "utf8")) as object;
		while (!isStopped) {
			edits += 1;
			await writeFile(`${dataFile}.new`, JSON.stringify({ ...data, clock_skew: 30 + (edits % 20) }));
			await rename(`${dataFile}.new`, dataFile);
			await sleep(RELOAD_EVERY);
		}
	})();
	return async () => {
		isStopped = true;
		await editing;
		return edits;
	};
}

async function mintFor(origin: string, index: number): Promise<Tokens> {
	const mint = async (sub: string, aud: string) => {
		const response = await fetch(`${origin}/dev/token`, {
			method: "POST",
			headers: { "content-type": "application/json" },
			body: JSON.stringify({ sub, client_id: "soak", aud, exp: Math.floor(Date.now() / 1000) + 7_200 }),
		});
		return ((await response.json()) as { access_token: string }).access_token;
	};
	const sub = `user-${index}`;
	return {
		wide: await mint(sub, SERVER),
		narrow: await mint(sub, `${SERVER}/tools/search`),
		other: await mint(sub, `${SERVER}/tools/fetch`),
		stranger: await mint(`stranger-${index}`, SERVER),
	};
}

function report(
	{ counts, unexplained }: Met,
	middle: Held,
	end: Held,
	edits: number,
	minutes: number,
): boolean {
	console.log(`${minutes.toFixed(1)} minutes, ${values.clients} clients, ${edits} edits of the data`);
	for (const [what, count] of [...counts].sort()) console.log(`  ${what}: ${count}`);
	const grown = end.heap - middle.heap;
	const isFlat = grown <= HEAP_MAY_GROW;
	const left = leftOver(middle.resources, end.resources);
	console.log(
		`heap: ${mib(middle.heap)} in the middle, ${mib(end.heap)} at the end: ${isFlat ? "flat" : "NOT flat"}`,
	);
	console.log(`events held: ${middle.events} in the middle, ${end.events} at the end`);
	console.log(`handles and timers: ${left.length === 0 ? "none left over" : `NOT flat: ${left.join(", ")}`}`);
	console.log(`unexplained: ${unexplained.length}`);
	for (const what of unexplained.slice(0, 10)) console.log(`  ${what.slice(0, 300)}`);
	const isDone = (counts.get("whole results") ?? 0) > 0;
	return isFlat && left.length === 0 && unexplained.length === 0 && isDone;
}

/** Of each kind there may be a few more, by chance of the moment. */
function leftOver(before: Held["resources"], after: Held["resources"]): string[] {
	return Object.entries(after)
		.filter(([kind, count]) => count > (before[kind] ?? 0) * 1.5 + 10)
		.map(([kind, count]) => `${kind} ${before[kind] ?? 0} → ${count}`);
}

function mib(bytes: number): string {
	return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

/** The same numbers for the same seed (mulberry32). */
function generator(seed: number): () => number {
	let state = seed >>> 0;
	return () => {
		state = (state + 0x6d2b79f5) >>> 0;
		let mixed = Math.imul(state ^ (state >>> 15), state | 1);
		mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
		return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
	};
}
