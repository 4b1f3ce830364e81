import type { PolicyData } from "mcp-resume-guard";
import type { EmittedEvent } from "../fastify/unguarded.ts";
import { type Call, connect, type DemoClient, sendTogether } from "./client.ts";
import { decisionIn, tellDecision, toldIn } from "./decisions.ts";
import { isResponse, messagesOn, numberOf, rowOf, streamOf, summary } from "./events.ts";
import { type DemoHost, withHost } from "./host.ts";
import { deliveredIn, type Exchange } from "./recorder.ts";
import type { EventState, Timeline } from "./timeline.ts";
import { faultsOf, leaksOf } from "./verify.ts";

const BOTH = "https://mcp.example.com";
const SEARCH = "https://mcp.example.com/tools/search";
const PAGES = 45;
const FOUND = `${PAGES} pages about resumption`;
const FETCHED = "the text of document report";

interface Scene {
	readonly host: DemoHost;
	readonly demo: DemoClient;
	readonly timeline: Timeline;
	readonly search: Call;
	readonly fetch: Call;
	/** The token that covers search only. */
	readonly narrow: string;
	/** What the host has stored for the stream of the two calls. */
	readonly events: readonly EmittedEvent[];
}

/**
 * A stream of two tools drops after event 41, and the client comes back with a token that covers one of them: without
 * the guard, and with it in both replay modes. Resolves with what the guarded runs did wrong.
 */
export async function playStory1(timeline: Timeline): Promise<string[]> {
	timeline.story("Story 1: one stream, two tools, and a token that covers one of them");
	timeline.run("without the guard; each call is checked, and each event that is replayed");
	await play(timeline, { guarded: false }, comeBackUnguarded);
	timeline.run("with the guard, replay: atomic");
	const atomic = await play(timeline, { guarded: true, replay: "atomic" }, comeBackAtomic);
	timeline.run("with the guard, replay: prefix");
	const prefix = await play(timeline, { guarded: true, replay: "prefix" }, comeBackPrefix);
	return [
		...atomic.map((fault) => `story 1, atomic: ${fault}`),
		...prefix.map((fault) => `story 1, prefix: ${fault}`),
	];
}

interface Setting {
	readonly guarded: boolean;
	readonly replay?: NonNullable<PolicyData["replay"]>;
}

async function play(
	timeline: Timeline,
	{ guarded, replay = "atomic" }: Setting,
	comeBack: (scene: Scene) => Promise<string[]>,
): Promise<string[]> {
	let demo: DemoClient | undefined;
	const isOfCalls = (cursor: string | undefined) =>
		cursor !== undefined && demo !== undefined && streamOf(cursor) === streamOf(demo.cursor);
	return withHost(
		{
			guarded,
			data: { replay },
			onDecision: (decision) => isOfCalls(decision.cursor) && tellDecision(timeline, decision),
		},
		async (host) => {
			timeline.step("client", `opens a session with aud ${BOTH}, which stands for both tools`);
			demo = await connect(host.example.mcp, await host.mint(BOTH), timeline);
			const scene = await dropAfter41(host, demo, timeline);
			const faults = await comeBack(scene);
			await demo.client.close();
			return faults;
		},
	);
}

async function dropAfter41(host: DemoHost, demo: DemoClient, timeline: Timeline): Promise<Scene> {
	const { recorder, session } = demo;
	const narrow = await host.mint(SEARCH);
	timeline.step("client", "calls search and fetch in one POST: their events share a stream");
	sendTogether(demo, 2);
	const query = { query: "resumption", pages: PAGES, gate: "rest", gate_after: 40 };
	const search = demo.call("search", query, { timeout: 5_000 });
	const fetch = demo.call("fetch", { id: "report", gate: "text" }, { timeout: 5_000 });
	await recorder.until(() => numberOf(demo.cursor) === "41");
	const stream = streamOf(demo.cursor);
	timeline.step("client", `has ${summary(messagesOn(stream, host.emitted))}`);

	recorder.line = "down";
	await host.drop(session);
	timeline.step("line", "drops after event 41");
	await host.goOn(session, "rest", (event) => event.tool === "search" && isResponse(event));
	await host.goOn(session, "text", (event) => event.tool === "fetch" && isResponse(event));
	const events = messagesOn(stream, host.emitted);
	const scene = { host, demo, timeline, search, fetch, narrow, events };
	timeline.step("host", "goes on, and stores what nobody listens to:");
	tellEvents(scene, () => "pending");
	recorder.token = narrow;
	recorder.line = "up";
	return scene;
}

async function comeBackUnguarded(scene: Scene): Promise<string[]> {
	const { demo, timeline, search, fetch } = scene;
	const answer = await answered(scene);
	timeline.step("client", `has a result of search: ${textOf(await search.ending)}`);
	timeline.step("line", `ends ${answer.end}ly, as if this were all`);
	timeline.step("client", `has no result of fetch: ${textOf(await fetch.ending)}`);
	tellEnd(scene);
	timeline.step("client", `will say that it has all up to ${numberOf(demo.cursor)}, if it ever comes back`);
	return [];
}

async function comeBackAtomic(scene: Scene): Promise<string[]> {
	const { host, demo, timeline, search, fetch } = scene;
	const told = toldIn(await answered(scene));
	const { required, cursor } = told;
	tellEvents(scene, (event) => (event.tool === "fetch" ? "held" : "pending"));
	timeline.step("client", `has nothing more than before; its cursor is ${numberOf(demo.cursor)}`);
	demo.recorder.token = await host.mint(required?.aud ?? []);
	timeline.step("client", "gets a token as the decision requires, before its next try");

	const endings = [await search.ending, await fetch.ending];
	for (const ending of endings) timeline.step("client", `has a result: ${textOf(ending)}`);
	tellEnd(scene);
	return [
		...(numberOf(cursor) === "41" ? [] : [`the cursor is ${cursor}`]),
		...faultsOfEnd(scene, endings.map(textOf)),
	];
}

async function comeBackPrefix(scene: Scene): Promise<string[]> {
	const { host, demo, timeline, search, fetch } = scene;
	const { transport, recorder } = demo;
	const told = toldIn(await answered(scene));
	tellEvents(scene, (event) => (event.tool === "fetch" ? "held" : "delivered"));
	const found = await search.ending;
	timeline.step(
		"client",
		`has a result of search: ${textOf(found)}`,
		`its cursor is ${numberOf(demo.cursor)}`,
	);

	// A client that has had a response on a stream does not come back to it by itself.
	while (await isPending(fetch.ending)) {
		timeline.step("client", "asks for the rest by hand");
		await transport.resumeStream(demo.cursor).catch(() => undefined);
		await recorder.until(() => recorder.exchanges.at(-1)?.end !== "open");
	}
	const { error } = await fetch.ending;
	timeline.step("client", `has an error of fetch: ${error?.message}; its cursor is ${numberOf(demo.cursor)}`);
	const { required } = decisionIn(error?.data);
	recorder.token = await host.mint(required?.aud ?? []);
	timeline.step("client", "gets a token as the error's data require, and takes the call up where it was");
	const { cursor } = demo;
	const fetched = await demo.call("fetch", { id: "report" }, { cursor }).ending;
	timeline.step("client", `has a result of fetch: ${textOf(fetched)}`);
	tellEnd(scene);
	return [
		...(numberOf(told.cursor) === "47" && told.deliver === 6 ? [] : [`the cursor is ${told.cursor}`]),
		...faultsOfEnd(scene, [found, fetched].map(textOf)),
	];
}

/** Once all that has come has been looked at. */
function isPending(promise: Promise<unknown>): Promise<boolean> {
	const looked = new Promise<boolean>((resolve) => setImmediate(() => resolve(true)));
	return Promise.race([promise.then(() => false), looked]);
}

function textOf({ text, error }: Awaited<Call["ending"]>): string {
	return text ?? error?.message ?? "";
}

/** The client's own resume, when all that came is there. */
async function answered({ demo }: Scene): Promise<Exchange> {
	const { recorder } = demo;
	const exchange = await recorder.exchange(({ lastEventId = "" }) => numberOf(lastEventId) === "41");
	await recorder.until(() => exchange.end !== "open");
	return exchange;
}

function tellEvents({ timeline, events }: Scene, state: (event: EmittedEvent) => EventState): void {
	timeline.events(events.slice(-7).map((event) => rowOf(event, state(event))));
}

function tellEnd(scene: Scene): void {
	const { demo, timeline, events } = scene;
	const ids = new Set(deliveredIn(demo.recorder.exchanges));
	const delivered = events.filter(({ id }) => ids.has(id));
	const lost = events.filter(({ id }) => !ids.has(id));
	timeline.step("end", `the client has ${summary(delivered)}; lost: ${summary(lost)}`);
	tellEvents(scene, ({ id }) => (ids.has(id) ? "delivered" : "lost"));
}

/** What the client was sent is compared with what the host had stored, and what its callers were given with both. */
function faultsOfEnd({ demo, events, search, narrow }: Scene, texts: readonly string[]): string[] {
	const { exchanges } = demo.recorder;
	const pages = Array.from({ length: PAGES }, (_, index) => index + 1);
	return [
		...faultsOf(events, exchanges),
		...leaksOf(FETCHED, narrow, exchanges),
		...(String(search.progress) === String(pages) ? [] : [`progress of ${search.progress}`]),
		...(String(texts) === String([FOUND, FETCHED]) ? [] : [`results ${texts.join(", ")}`]),
	];
}
