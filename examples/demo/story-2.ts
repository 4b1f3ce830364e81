import type { PolicyData } from "mcp-resume-guard";
import { connect, type DemoClient, resumeAs } from "./client.ts";
import { tellDecision, toldIn } from "./decisions.ts";
import { isResponse, messagesOn, numberOf, rowOf, streamOf, summary } from "./events.ts";
import { type DemoHost, withHost } from "./host.ts";
import { deliveredIn, type Exchange } from "./recorder.ts";
import type { EventState, Timeline } from "./timeline.ts";
import { faultsOf } from "./verify.ts";

const OPENED = "mcp://srv";
const ROTATED = "mcp://srv/v2";
const PAGES = 8;
const FOUND = `${PAGES} pages about rotation`;

interface Scene {
	readonly host: DemoHost;
	readonly timeline: Timeline;
	readonly demo: DemoClient;
	readonly search: ReturnType<DemoClient["call"]>;
	readonly stream: string;
}

/**
 * A session that was opened under one audience and is gone on with under another, and one whose id has leaked: without
 * the guard, and with it. Resolves with what the guarded runs did wrong.
 */
export async function playStory2(timeline: Timeline): Promise<string[]> {
	timeline.story("Story 2: a session id outlives what it was opened with");
	timeline.run("without the guard: the audience is another one now");
	await play(timeline, { guarded: false }, goOnRotated);
	timeline.step("end", `nobody has compared ${ROTATED} with ${OPENED}`);
	timeline.run("without the guard: the session id has leaked");
	await play(timeline, { guarded: false }, goOnAsStranger);
	timeline.run("with the guard: the audience is another one now");
	const drifted = await play(timeline, { guarded: true }, driftAndReinitialize);
	timeline.run(
		"with the guard: the operator has planned the rotation, and declared the two audiences aliases",
	);
	const aliases = await play(timeline, { guarded: true, aliases: [[OPENED, ROTATED]] }, goOnRotated);
	timeline.run("with the guard: the session id has leaked");
	const leaked = await play(timeline, { guarded: true }, goOnAsStranger);
	return [
		...drifted.map((fault) => `story 2, drift: ${fault}`),
		...aliases.map((fault) => `story 2, aliases: ${fault}`),
		...leaked.map((fault) => `story 2, stranger: ${fault}`),
	];
}

interface Setting {
	readonly guarded: boolean;
	readonly aliases?: NonNullable<PolicyData["aliases"]>;
}

async function play(
	timeline: Timeline,
	{ guarded, aliases = [] }: Setting,
	goOn: (scene: Scene) => Promise<string[]>,
): Promise<string[]> {
	return withHost(
		{
			guarded,
			data: { aliases },
			onDecision: (decision) => decision.moment === "resume" && tellDecision(timeline, decision),
		},
		async (host) => goOn(await dropAfter4(host, timeline)),
	);
}

async function dropAfter4(host: DemoHost, timeline: Timeline): Promise<Scene> {
	timeline.step("client", `opens a session as alice with aud ${OPENED}, and calls search`);
	const demo = await connect(host.example.mcp, await host.mint(OPENED), timeline, { ownStream: true });
	const { recorder, session } = demo;
	const search = demo.call("search", { query: "rotation", pages: PAGES, gate: "rest", gate_after: 3 });
	await recorder.until(() => numberOf(demo.cursor) === "4");
	const stream = streamOf(demo.cursor);
	recorder.line = "down";
	await host.drop(session);
	timeline.step("line", `drops after event 4; the client has ${summary(messagesOn(stream, host.emitted))}`);
	await host.goOn(session, "rest", isResponse);
	timeline.step("host", "goes on, and stores what nobody listens to:");
	tellEvents(timeline, host, stream, recorder.exchanges, "pending");
	return { host, timeline, demo, search, stream };
}

/** The same subject, with a token for the new audience. */
async function goOnRotated({ host, timeline, demo, search, stream }: Scene): Promise<string[]> {
	const { recorder, client } = demo;
	recorder.token = await host.mint(ROTATED);
	recorder.line = "up";
	const { text, error } = await search.ending;
	timeline.step("end", `the client has a result: ${text ?? error?.message}`);
	tellEvents(timeline, host, stream, recorder.exchanges, "lost");
	await client.close();
	return [
		...faultsOf(messagesOn(stream, host.emitted), recorder.exchanges),
		...unequal("result", text, FOUND),
	];
}

async function driftAndReinitialize({ host, timeline, demo, stream }: Scene): Promise<string[]> {
	const { recorder, client, session } = demo;
	const rotated = await host.mint(ROTATED);
	const before = recorder.exchanges.length;
	recorder.token = rotated;
	recorder.line = "up";
	const refused = await recorder.exchange(({ status }) => status === 403, before);
	const unknown = await recorder.exchange(({ status }) => status === 404, before);
	await recorder.until(() => refused.end !== "open");
	const { drift } = toldIn(refused);
	timeline.step("client", `is told 403 without Mcp-Session-Id, drift ${drift.join(", ")}, and then 404`);
	tellEvents(timeline, host, stream, recorder.exchanges, "dropped");
	const { events } = host.log.stats();
	timeline.step("guard", `holds ${events} events of the session`);
	await client.close();

	timeline.step("client", "initializes again, and calls search again");
	const again = await connect(host.example.mcp, rotated, timeline);
	const { text, error } = await again.call("search", { query: "rotation", pages: PAGES }).ending;
	timeline.step("end", `the client has a fresh session id and a result: ${text ?? error?.message}`);
	await again.client.close();

	const sent = deliveredIn(recorder.exchanges.slice(before)).map(numberOf);
	return [
		...unequal("drift", drift, ["aud"]),
		...[refused, unknown].flatMap(({ headers, status }) =>
			headers.has("mcp-session-id") ? [`${status} with a session id`] : [],
		),
		...(again.session === session ? ["the session id is the old one"] : []),
		...unequal("buffer", events, 0),
		...unequal("events sent", sent, []),
		...unequal("result", text, FOUND),
	];
}

/** Somebody else, with a valid token of their own, who has come by the session id and a cursor. */
async function goOnAsStranger({ host, timeline, demo, stream }: Scene): Promise<string[]> {
	const { client, session, cursor } = demo;
	timeline.step("mallory", "has a valid token as well, and the session id from somewhere");
	const token = await host.mint(OPENED, "mallory");
	const { mcp } = host.example;
	const exchange = await resumeAs("mallory", { mcp, token, session, cursor }, timeline);
	const leaked = deliveredIn([exchange]);
	timeline.step("end", leaked.length > 0 ? "mallory has what is alice's" : "mallory has nothing");
	tellEvents(timeline, host, stream, [exchange], "dropped");
	await client.close();
	return [
		...leaked.map((id) => `${numberOf(id)} leaked`),
		...unequal("status", exchange.status, 403),
		...(exchange.headers.has("mcp-session-id") ? ["the session id was confirmed"] : []),
	];
}

function tellEvents(
	timeline: Timeline,
	host: DemoHost,
	stream: string,
	exchanges: readonly Exchange[],
	otherwise: EventState,
): void {
	const delivered = new Set(deliveredIn(exchanges));
	const rows = messagesOn(stream, host.emitted).slice(3);
	timeline.events(rows.map((event) => rowOf(event, delivered.has(event.id) ? "delivered" : otherwise)));
}

function unequal(what: string, found: unknown, expected: unknown): string[] {
	const [is, should] = [found, expected].map((value) => JSON.stringify(value));
	return is === should ? [] : [`${what}: ${is} instead of ${should}`];
}
