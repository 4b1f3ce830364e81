import type { Need } from "../reference/question.ts";
import { checkEmitted, checkResume, type Step } from "./check.ts";
import { createExpectation, type Expectation } from "./expect.ts";
import {
	type Action,
	alice,
	type CursorAt,
	createWorld,
	type Layout,
	type Stage,
	type State,
	type Visitor,
	type World,
} from "./world.ts";

export interface WorldBounds {
	/** Resumes, beside the one that ends a world well. */
	readonly resumes: number;
	/** Connections that the client loses, the POST's own among them. */
	readonly drops: number;
	/** Tokens that expire all at once, and sessions that end. */
	readonly mishaps: number;
}

export interface WorldCount {
	/** Courses of events from their beginning: with each token that an explored one stands for. */
	worlds: number;
	/** Distinct states that they lead through, and the steps that were run and checked. */
	states: number;
	steps: number;
}

/** Visitors who are answered alike in every state, with one for all of them. */
export interface VisitorClass {
	readonly visitor: Visitor;
	readonly size: number;
	readonly vector: string;
}

/** All who may come: alice with every token, late, without one, and bob. */
export function visitorsOf({ universe }: Stage): Visitor[] {
	const [first] = universe.tokens;
	const tokens = universe.tokens.map((token, index) => ({
		name: `alice ${index}`,
		claims: { ...alice, ...token },
	}));
	return [
		...tokens,
		{ name: "late", claims: { ...alice, ...first }, isLate: true },
		{ name: "nobody", claims: undefined },
		{ name: "bob", claims: { ...alice, ...first, sub: "bob" } },
	];
}

const LIVING: State = {
	appended: 0,
	written: 0,
	acknowledged: 0,
	received: 0,
	isAlive: true,
	era: 0,
	attached: undefined,
	slot: "",
};

/**
 * The classes of visitors. The code that serves a resume knows a token by what is decided about it, and by whether its
 * rights are those that were refused last: so tokens about which the same is decided, wherever the cursor stands, have
 * the same worlds.
 */
export function classesOf(stage: Stage, layout: Layout, binding: Need): VisitorClass[] {
	const expectation = createExpectation(stage, layout, binding, String);
	const classes = new Map<string, { visitor: Visitor; size: number }>();
	for (const visitor of visitorsOf(stage)) {
		// A refusal is remembered by what it asked for.
		const required = new Map<string, number>();
		const vector: unknown[] = [];
		for (let appended = 0; appended <= layout.length; appended++) {
			const state = { ...LIVING, appended, written: appended };
			for (let at = 0; at <= appended; at++) {
				const answer = expectation.resume(state, visitor, at);
				const { outcome, code, deliver, session, status } = answer;
				const name = answer.required === undefined ? "" : JSON.stringify(answer.required);
				if (!required.has(name)) required.set(name, required.size);
				vector.push(outcome, code, deliver, session, status, required.get(name));
			}
		}
		for (let position = 1; position <= layout.length; position++) {
			vector.push(expectation.covers(LIVING, visitor, 0, position));
		}
		const key = vector.join(" ");
		const known = classes.get(key);
		if (known === undefined) classes.set(key, { visitor, size: 1 });
		else known.size += 1;
	}
	return [...classes].map(([vector, { visitor, size }]) => ({ visitor, size, vector }));
}

interface Node {
	readonly sent: number;
	readonly actions: readonly Action[];
	readonly state: State;
	readonly resumes: number;
	readonly drops: number;
	readonly mishaps: number;
	/**
	 * The last resume was refused and has changed nothing but what is remembered of the refusal: whoever else comes finds
	 * the world as it was before, which is looked at from there.
	 */
	readonly refused: string | undefined;
	/** How many courses of events lead here. */
	courses: number;
}

/** Explores all that can happen on one stream of one session, up to the bounds. */
export async function exploreWorlds(
	stage: Stage,
	layout: Layout,
	binding: Need,
	classes: readonly VisitorClass[],
	bounds: WorldBounds,
	count: WorldCount,
): Promise<void> {
	const visitors = classes.map(({ visitor }) => visitor);
	const expectation = createExpectation(stage, layout, binding, String);
	// Each action makes a node's rank greater: no node is met again after it was expanded.
	const ranks: Map<string, Node>[] = [];
	const put = (node: Node) => {
		const { state, resumes, drops, mishaps, refused } = node;
		const rank = state.appended + resumes + drops + mishaps;
		ranks[rank] ??= new Map();
		// Of an open connection it matters what may still go out on it.
		const { attached, ...others } = state;
		const holder = visitors.find(({ name }) => name === attached?.name);
		const covers = layout.map(
			(_, index) =>
				holder !== undefined && index >= state.appended && expectation.covers(LIVING, holder, 0, index + 1),
		);
		const open = attached && [attached.era, covers];
		const key = JSON.stringify([others, open, resumes, drops, mishaps, refused]);
		const known = ranks[rank]?.get(key);
		if (known === undefined) ranks[rank]?.set(key, node);
		else known.courses += node.courses;
	};
	for (let sent = 0; sent <= layout.length; sent++) {
		const acknowledged = Math.min(sent, expectation.goneAt(sent));
		const state = { ...LIVING, appended: sent, written: sent, received: sent, acknowledged };
		put({ sent, actions: [], state, resumes: 0, drops: 1, mishaps: 0, refused: undefined, courses: 1 });
	}

	const sizeOf = new Map(classes.map(({ visitor, size }) => [visitor.name, size]));
	for (let rank = 0; rank < ranks.length; rank++) {
		for (const node of ranks[rank]?.values() ?? []) {
			count.states += 1;
			let isLast = true;
			for (const action of actionsIn(node, classes, layout, bounds, expectation)) {
				isLast = false;
				const next = await run(stage, layout, binding, node, action, visitors);
				count.steps += 1;
				const times = action.kind === "resume" ? (sizeOf.get(action.by.name) ?? 1) : 1;
				put({ ...next, courses: node.courses * times });
			}
			if (isLast) count.worlds += node.courses;
		}
	}
}

function actionsIn(
	node: Node,
	classes: readonly VisitorClass[],
	layout: Layout,
	bounds: WorldBounds,
	expectation: Expectation,
): Action[] {
	const { state, resumes, drops, mishaps, refused } = node;
	const { appended, written, acknowledged, received, isAlive, attached } = state;
	const actions: Action[] = [];
	if (refused === undefined) {
		if (isAlive && appended < layout.length) actions.push({ kind: "emit" });
		if (attached !== undefined && drops < bounds.drops) actions.push({ kind: "leave" });
		if (isAlive && mishaps < bounds.mishaps) {
			// Who comes later brings a token of its time.
			if (attached !== undefined) actions.push({ kind: "expire" });
			if (attached !== undefined || resumes === 0) actions.push({ kind: "end" });
		}
	}
	if (resumes >= bounds.resumes) return actions;
	const held: CursorAt[] = Array.from({ length: received + 1 }, (_, position) => position);
	// What nobody can hold, and who cannot be told apart by what happened before.
	const invented: CursorAt[] = [...(written < appended ? [written + 1] : []), "ahead", "foreign", "unknown"];
	const isFresh = drops === 1 && mishaps === 0 && resumes === 0;
	const ends: CursorAt[] = [...new Set([Math.min(acknowledged, received), received])];
	const cursors = !isAlive ? [received] : isFresh ? [...held, ...invented] : resumes === 0 ? held : ends;
	// Who is refused whatever the stream holds leaves it as it is, unless the session ends with somebody's connection.
	const changesAnything = (by: Visitor) => {
		const { outcome, session } = expectation.resume(state, by, received);
		return outcome !== "reauthenticate" && (session === "keep" || attached !== undefined);
	};
	for (const { visitor: by } of classes) {
		if (refused !== undefined && (refused !== `${by.name} ${received}` || !isAlive)) continue;
		if (resumes > 0 && !changesAnything(by)) continue;
		for (const at of cursors) {
			actions.push({ kind: "resume", by, at });
			if (drops >= bounds.drops) continue;
			const { outcome, deliver = 0 } = expectation.resume(state, by, at);
			if (outcome !== "proceed" && deliver === 0) continue;
			for (const take of new Set([0, Math.min(1, deliver), deliver])) {
				actions.push({ kind: "resume", by, at, take });
			}
		}
	}
	return actions;
}

async function run(
	stage: Stage,
	layout: Layout,
	binding: Need,
	node: Node,
	action: Action,
	visitors: readonly Visitor[],
): Promise<Node> {
	const world = await createWorld(stage, layout, binding, node.sent);
	const expectation = createExpectation(stage, layout, binding, world.idAt);
	try {
		for (const before of node.actions) await world.act(before);
		const { after, hasLeft } = await step(world, expectation, node.state, action, visitors);
		if (action.kind === "resume") await checkRequired(world, expectation, node.state, action);
		return {
			sent: node.sent,
			actions: [...node.actions, action],
			state: after,
			resumes: node.resumes + (action.kind === "resume" ? 1 : 0),
			drops: node.drops + (hasLeft ? 1 : 0),
			mishaps: node.mishaps + (action.kind === "expire" || action.kind === "end" ? 1 : 0),
			refused:
				action.kind === "resume" && isSameBut(node.state, after)
					? `${action.by.name} ${action.at}`
					: undefined,
			courses: 0,
		};
	} catch (cause) {
		const { sent, actions } = node;
		const course = { sent, actions: [...actions, action] };
		const about = { data: stage.data, capacity: stage.capacity, layout, binding, ...course };
		throw new Error(`${cause instanceof Error ? cause.message : cause}:\n${JSON.stringify(about)}`, {
			cause,
		});
	} finally {
		await world.close();
	}
}

/** Does one thing more in a world, and checks what became of it. */
export async function step(
	world: World,
	expectation: Expectation,
	before: State,
	action: Action,
	visitors: readonly Visitor[],
): Promise<{ after: State; hasLeft: boolean }> {
	const reader = world.attached();
	const answered = await world.act(action);
	const after = await world.state();
	const at: Step = { world, expectation, before, after };
	let hasLeft = action.kind === "leave";
	if (action.kind === "resume") {
		if (answered === undefined) throw new Error("a resume is answered");
		checkResume(at, action, answered);
		hasLeft = answered.kind === "stream" && answered.reader.state() === "left";
	}
	if (action.kind === "emit") {
		const holder = visitors.find(({ name }) => name === before.attached?.name);
		checkEmitted(at, holder ?? { name: "nobody", claims: undefined });
	}
	if (action.kind === "end" && reader !== undefined && reader.state() !== "cut") {
		throw new Error("the streams of an ended session are cut");
	}
	return { after, hasLeft };
}

/** After a refusal, a token as required goes on from where the client is. The world is another one then. */
export async function checkRequired(
	world: World,
	expectation: Expectation,
	before: State,
	{ by, at }: Extract<Action, { kind: "resume" }>,
): Promise<void> {
	const { required } = expectation.resume(before, by, at);
	if (required === undefined) return;
	const visitor: Visitor = { name: "required", claims: { ...alice, ...required } };
	const resume = { kind: "resume" as const, by: visitor, at };
	const now = await world.state();
	const answered = await world.act(resume);
	if (answered?.kind !== "stream") throw new Error("a token as required proceeds");
	checkResume({ world, expectation, before: now, after: await world.state() }, resume, answered);
}

/** Nothing but what is remembered of a refusal. */
function isSameBut(before: State, after: State): boolean {
	return JSON.stringify({ ...before, slot: "" }) === JSON.stringify({ ...after, slot: "" });
}
