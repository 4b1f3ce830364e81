import type { Answer } from "../reference/question.ts";
import type { Expectation } from "./expect.ts";
import type { Frame } from "./sink.ts";
import type { Action, Answered, State, World } from "./world.ts";

type Resume = Extract<Action, { kind: "resume" }>;

export interface Step {
	readonly world: World;
	readonly expectation: Expectation;
	readonly before: State;
	readonly after: State;
}

/** Throws if a resume was not answered as the contract has it, or has left the world otherwise. */
export function checkResume(step: Step, action: Resume, answered: Answered): void {
	const { expectation, before, after } = step;
	const { by, at, take } = action;
	const expected = expectation.resume(before, by, at);
	const { outcome, deliver = 0, session } = expected;

	must(after.isAlive === (before.isAlive && session === "keep"), "the session lives on as decided");
	const isFinished = before.appended === step.world.layout.length;
	if (outcome === "proceed" && deliver === 0 && isFinished) {
		const isSaid = answered.kind === "whole" && answered.status === 204 && answered.body === "";
		must(isSaid, "that nothing more can come is said with 204");
	} else if (answered.kind === "whole") checkRefusal(expected, answered);
	else {
		const { reader } = answered;
		const { frames } = reader;
		checkIds(step, at, frames);
		const sent = messagesOf(frames).filter(({ id }) => id !== undefined);
		const isPart = outcome === "reauthorize" && deliver > 0;
		if (outcome !== "proceed" && !isPart)
			checkFailure(step, action, expected, answered.reader.state(), frames);
		else {
			must(
				frames[0]?.id === step.world.idAt(at) && frames[0].data === "",
				"the answer starts with the cursor",
			);
			const taken = take === undefined ? deliver : Math.min(take, deliver);
			must(sent.length === taken, "all that may go out goes out");
			const isLeft = take !== undefined && take <= deliver;
			const state = isLeft ? "left" : isPart || isFinished ? "end" : "open";
			must(reader.state() === state, `the stream is ${state}, not ${reader.state()}`);
			if (isPart && !isLeft) {
				must(
					frames.some(({ event }) => event === "error"),
					"a part ends with why it is no more",
				);
			}
		}
	}

	if (!after.isAlive) {
		must(after.attached === undefined, "the streams of an ended session are closed");
		return;
	}
	const from = typeof at === "number" ? at : 0;
	const sent = sentBy(answered);
	const reached = sent === 0 ? 0 : from + sent;
	must(after.written === Math.max(before.written, reached), "written is what went out, and no more");
	const claimed = outcome === "proceed" ? Math.min(from, before.written) : 0;
	let acknowledged = before.acknowledged;
	while (acknowledged < claimed && expectation.covers(before, by, before.era, acknowledged + 1))
		acknowledged += 1;
	must(
		after.acknowledged === Math.max(before.acknowledged, acknowledged),
		"acknowledged is what the cursor claims and the token covers",
	);
	if (outcome !== "proceed") {
		must(after.attached?.name === before.attached?.name, "a refusal takes no stream over");
	}
}

/** Throws if an open connection was not sent the event just appended, or was though its token does not cover it. */
export function checkEmitted(
	{ world, expectation, before, after }: Step,
	by: Parameters<Expectation["covers"]>[1],
): void {
	const { attached } = before;
	const position = after.appended;
	must(position === before.appended + 1, "an event is in the log");
	// What has gone is no longer there to be acknowledged.
	const gone = Math.min(after.written, expectation.goneAt(position));
	must(after.acknowledged === Math.max(before.acknowledged, gone), "an append acknowledges nothing");
	if (attached === undefined) {
		must(after.written === before.written && after.received === before.received, "nobody is sent anything");
		return;
	}
	const mayGoOut = expectation.covers(before, by, attached.era, position);
	must(after.received === (mayGoOut ? position : before.received), "sent if covered, and only then");
	must(after.written === (mayGoOut ? position : before.written), "written if sent, and only then");
	const isOver = !mayGoOut || position === world.layout.length;
	must((after.attached === undefined) === isOver, "the connection goes on until the last event, or is cut");
}

function checkRefusal(expected: Answer, answered: Extract<Answered, { kind: "whole" }>): void {
	must(
		expected.outcome !== "proceed" && (expected.deliver ?? 0) === 0,
		"what may go on is answered with a stream",
	);
	must(answered.status === expected.status && answered.status >= 400, "refused with the decided status");
	const { error } = JSON.parse(answered.body) as { error: { data?: { code: string } } };
	const isHidden = ["session_unknown", "principal_drift"].includes(expected.code);
	must(
		error.data?.code === (isHidden ? undefined : expected.code),
		"the refusal says why, but to no stranger",
	);
}

/** Calls that cannot be had, or not with such tokens: each is told so, and the cursor stays. */
function checkFailure(
	{ before, after, expectation }: Step,
	{ at }: Resume,
	expected: Answer,
	state: string,
	frames: readonly Frame[],
): void {
	const from = typeof at === "number" ? at : 0;
	const waiting = expectation.waitingAfter(from);
	const isRepeated = expected.outcome === "reauthorize" && before.slot === after.slot;
	must(
		isRepeated || expected.outcome === "reissue",
		"a stream answers a refusal only when it is repeated, or final",
	);
	must(waiting.length > 0, "nobody waits for a failure");
	must(
		frames.every(({ id }) => id === undefined),
		"a failure moves no cursor",
	);
	must(state === "end", "a failure is said in whole");
	const failed = messagesOf(frames).map(
		({ data }) => JSON.parse(data ?? "") as { id?: string; error?: object },
	);
	must(
		failed.length === waiting.length &&
			waiting.every((call) => failed.some(({ id, error }) => id === call && error)),
		"each call that waits is told",
	);
}

/** The ids that a client sees are its cursor, and after it the next events, one by one: never one beyond what it has. */
function checkIds({ world }: Step, at: Resume["at"], frames: readonly Frame[]): void {
	let position = typeof at === "number" ? at : 0;
	for (const { id, event, data } of frames) {
		if (id === undefined) continue;
		if (event === "message") {
			position += 1;
			must(data === world.messageAt(position), "no event is skipped, doubled or changed");
		}
		must(world.positionOf(id) === position, "the cursor is where the events are");
	}
}

function messagesOf(frames: readonly Frame[]): Frame[] {
	return frames.filter(({ event }) => event === "message");
}

function sentBy(answered: Answered): number {
	if (answered.kind === "whole") return 0;
	return messagesOf(answered.reader.frames).filter(({ id }) => id !== undefined).length;
}

function must(holds: boolean, what: string): void {
	if (!holds) throw new Error(`it does not hold that ${what}`);
}
