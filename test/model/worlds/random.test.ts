import fc from "fast-check";
import { expect, test } from "vitest";
import { isFull, TIMEOUT } from "../bounds.ts";
import type { Need } from "../reference/question.ts";
import { PROFILES, REPLAYS, type Universe, universes } from "../universe.ts";
import { withClock } from "./clock.ts";
import { createExpectation, type Expectation } from "./expect.ts";
import { checkRequired, step, visitorsOf } from "./explore.ts";
import {
	type Action,
	alice,
	type CursorAt,
	createStage,
	createWorld,
	type Stage,
	type State,
	type Visitor,
} from "./world.ts";

const RUNS = isFull ? 20_000 : 120;
const ROOM = [100, 12, 5];

/** What happens next, by numbers that the state gives a meaning. */
const happening = fc.record({
	kind: fc.oneof(
		{ weight: 6, arbitrary: fc.constant("emit" as const) },
		{ weight: 8, arbitrary: fc.constant("resume" as const) },
		{ weight: 2, arbitrary: fc.constant("leave" as const) },
		{ weight: 1, arbitrary: fc.constant("expire" as const) },
	),
	who: fc.nat(),
	/** The token that opened the session; any other. */
	isOwner: fc.boolean(),
	at: fc.nat(),
	/** 0: a cursor that the client was never given. 1: one who ends the session. */
	odd: fc.nat({ max: 40 }),
	take: fc.option(fc.nat({ max: 8 }), { nil: undefined }),
});
type Happening = typeof happening extends fc.Arbitrary<infer T> ? T : never;

const course = fc.record({
	universe: fc.constantFrom(...universes.map(({ name }) => name)),
	profile: fc.constantFrom(...PROFILES),
	replay: fc.constantFrom(...REPLAYS),
	foreign_principal: fc.constantFrom("end" as const, "keep" as const),
	room: fc.constantFrom(...ROOM),
	layout: fc.array(fc.nat(), { minLength: 1, maxLength: 24, size: "max" }),
	binding: fc.nat(),
	sent: fc.nat({ max: 12 }),
	happenings: fc.array(happening, { minLength: 1, maxLength: 40, size: "max" }),
});

test("nothing is lost and no one gets in, in larger worlds at random", { timeout: TIMEOUT }, async () => {
	let steps = 0;
	let decisions = 0;
	await withClock(async (setEra) => {
		const stages = new Map<string, Promise<Stage>>();
		const stageOf = (universe: Universe, data: object, room: number) => {
			const key = JSON.stringify([universe.name, data, room]);
			const stage = stages.get(key) ?? createStage(universe, { ...universe.data, ...data }, room, setEra);
			stages.set(key, stage);
			return stage;
		};
		await fc.assert(
			fc.asyncProperty(
				course,
				async ({ universe: called, layout, binding, sent, happenings, room, ...data }) => {
					const { profile, replay, foreign_principal } = data;
					const universe = pick(
						universes,
						universes.findIndex(({ name }) => name === called),
					);
					const stage = await stageOf(universe, { profile, replay, foreign_principal }, room);
					const tools = layout.map((tool) => pick(universe.tools, tool));
					const opened: Need = pick(universe.tokens, binding);
					const world = await createWorld(stage, tools, opened, Math.min(sent, tools.length));
					const expectation = createExpectation(stage, tools, opened, world.idAt);
					const owner = { name: "owner", claims: { ...alice, ...opened } };
					const visitors = [...visitorsOf(stage), owner];
					try {
						for (const [index, one] of happenings.entries()) {
							const state = await world.state();
							const isLasting = (visitor: Visitor) =>
								one.odd === 1 || expectation.resume(state, visitor, 0).session === "keep";
							const by = one.isOwner ? owner : pick([owner, ...visitors.filter(isLasting)], one.who);
							const action = actionOf(one, by, state, tools.length, expectation);
							if (action === undefined) continue;
							await step(world, expectation, state, action, visitors);
							steps += 1;
							const isLast = index === happenings.length - 1;
							if (isLast && action.kind === "resume") await checkRequired(world, expectation, state, action);
						}
					} finally {
						await world.close();
					}
				},
			),
			{ numRuns: RUNS },
		);
		for (const stage of stages.values()) decisions += (await stage).memo.counts.decided;
	});
	console.log(`model: ${RUNS} larger worlds at random: ${steps} steps, ${decisions} decisions`);
	expect(steps).toBeGreaterThan(RUNS);
});

function actionOf(
	{ kind, at, odd, take }: Happening,
	by: Extract<Action, { kind: "resume" }>["by"],
	state: State,
	length: number,
	expectation: Expectation,
): Action | undefined {
	const { appended, written, received, isAlive, attached } = state;
	switch (kind) {
		case "emit":
			return isAlive && appended < length ? { kind } : undefined;
		case "leave":
			return attached === undefined ? undefined : { kind };
		case "resume": {
			const invented: CursorAt[] = ["ahead", "foreign", "unknown", written + 1];
			const cursor = odd === 0 ? pick(invented, at) : received - Math.min(received, at % 4);
			const { outcome, deliver = 0 } = expectation.resume(state, by, cursor);
			const mayLeave = take !== undefined && take <= deliver && (outcome === "proceed" || deliver > 0);
			return { kind, by, at: cursor, ...(mayLeave && { take }) };
		}
		default:
			return { kind };
	}
}

function pick<T>(values: readonly T[], at: number): T {
	return values[at % values.length] as T;
}
