import { randomUUID } from "node:crypto";
import type { PolicyData, TokenVerifierOptions } from "mcp-resume-guard";
import { describe, expect, onTestFinished, test } from "vitest";
import { createGates, type Gates } from "../../../examples/fastify/gates.ts";
import { call, clientOf, openSession, type RawClient, told } from "../support/client.ts";
import { data, FETCH, SEARCH, token, tokens } from "../support/host.ts";
import type { Exchange } from "../support/http.ts";

export interface Recipe {
	readonly origin: string;
	close(): Promise<void>;
}

/**
 * Starts a recipe with three tools: `search`; `fetch`, which reports that it has begun and waits at the gate `turn`; and
 * `announce`, after which the list of tools has changed.
 */
export type StartRecipe = (
	options: { readonly data: PolicyData; readonly tokens: TokenVerifierOptions },
	gates: Gates,
) => Promise<Recipe>;

export interface RecipeTraits {
	/** The newest revision that the host speaks. Default: 2025-11-25. */
	readonly version?: string;
	/** How often a resume may drop before its first event. Default: as often as it likes. */
	readonly primes?: boolean;
	/** What the server sends of its own reaches the session's stream, and can be resumed. Default: true. */
	readonly announces?: boolean;
	/** A call that is refused has an error of its tool, not an HTTP status. Default: false. */
	readonly refusesInside?: boolean;
}

const owl = "the text of document owl";
const fetchOwl = call(7, "fetch", { id: "owl" });

/** What of the guard a recipe has, whatever the host. */
export function recipeSuite(name: string, start: StartRecipe, traits: RecipeTraits = {}): void {
	const { version = "2025-11-25", announces = true, refusesInside = false } = traits;
	const { primes = version >= "2025-11-25" } = traits;
	const first = version >= "2025-11-25" ? ["#1 cursor"] : [];
	const number = (index: number) => `#${1 + index}`;

	async function run(changes: Partial<PolicyData> = {}) {
		const gates = createGates();
		const recipe = await start({ data: { ...data, ...changes }, tokens }, gates);
		onTestFinished(() => recipe.close());
		return {
			gates,
			open: (opener: string) => openSession(recipe.origin, opener, version),
			origin: recipe.origin,
		};
	}

	describe(name, () => {
		test("a stranger with a leaked session id gets what an unknown id gets, and the owner goes on", async () => {
			const { open, origin, gates } = await run({ foreign_principal: "keep" });
			const [owner, stranger] = [await token(), await token({ sub: "mallory" })];
			const client = await open(owner);
			const posted = await client.post(owner, fetchOwl);
			await posted.count(first.length + 1);
			const unknown = clientOf(origin, randomUUID(), version);

			const requests: ((client: RawClient) => Promise<Exchange>)[] = [
				({ get }) => get(stranger),
				({ get }) => get(stranger, posted.cursor),
				({ post }) => post(stranger, call(8, "search")),
				({ post }) =>
					post(stranger, { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 7 } }),
				(client) => client.delete(stranger),
			];
			for (const ask of requests) {
				const [asked, same] = [await ask(client), await ask(unknown)];
				expect([asked.status, await asked.text()]).toEqual([404, await same.text()]);
			}

			gates.open("", "turn");
			expect(await posted.closed).toBe("ended");
			expect(told(posted)).toEqual([...first, `${number(1)} of 7: begun`, `${number(2)} 7 = ${owl}`]);
		});

		test("another audience ends the session", async () => {
			const { open } = await run();
			const before = await token({ aud: "mcp://srv" });
			const client = await open(before);
			const listening = await client.get(before);

			const refused = await client.get(await token({ aud: "mcp://srv/v2" }));

			expect(refused.status).toBe(403);
			expect(refused.headers).not.toHaveProperty("mcp-session-id");
			expect(await listening.closed).toBe("cut");
			expect((await client.post(before, call(8, "search"))).status).toBe(404);
		});

		test("the owner ends the session", async () => {
			const { open } = await run();
			const owner = await token();
			const client = await open(owner);
			const posted = await client.post(owner, fetchOwl);
			await posted.count(first.length + 1);

			expect((await client.delete(owner)).status).toBeLessThan(300);

			expect(await posted.closed).toBe("cut");
			expect((await client.get(owner, posted.cursor)).status).toBe(404);
		});

		test("a token that expires takes its open streams with it", async () => {
			const { open, gates } = await run({ clock_skew: 0 });
			const owner = await token();
			const client = await open(owner);
			const posted = await client.post(await token({ exp: Date.now() / 1000 + 1 }), fetchOwl);
			await posted.count(first.length + 1);

			expect(await posted.closed).toBe("cut");

			gates.open("", "turn");
			const resumed = await client.get(owner, posted.cursor);
			expect(await resumed.closed).toBe("ended");
			expect(told(resumed).at(-1)).toBe(`${number(2)} 7 = ${owl}`);
		});

		if (announces) {
			test("what the server sends of its own is resumed, too", async () => {
				const { open } = await run();
				const owner = await token();
				const client = await open(owner);
				const listening = await client.get(owner);
				await (await client.post(owner, call(7, "announce"))).text();
				await listening.count(first.length + 1);
				await listening.drop();
				await (await client.post(owner, call(8, "announce"))).text();

				const resumed = await client.get(owner, listening.cursor);
				await resumed.count(first.length + 1);

				const changed = "notifications/tools/list_changed";
				expect(told(listening)).toEqual([...first, `#2 ${changed}`]);
				expect(told(resumed)).toEqual([...(primes ? ["#2 cursor"] : []), `#3 ${changed}`]);
			});
		}

		test("a call is decided", async () => {
			const { open } = await run();
			const wide = await token();
			const narrow = await token({ aud: SEARCH });
			const client = await open(wide);

			const refused = await client.post(narrow, fetchOwl);
			if (refusesInside) {
				expect(await refused.closed).toBe("ended");
				expect(told(refused)).toEqual([...first, `${number(1)} 7 = reauthorize: audience_not_covered`]);
			} else {
				expect(refused.status).toBe(403);
			}
			const allowed = await client.post(narrow, call(8, "search"));
			expect(await allowed.closed).toBe("ended");
			expect(told(allowed)).toEqual([...first, `${number(1)} 8 = found`]);
		});

		test("a resume is decided: refused in stages, then everything from the same cursor, once", async () => {
			const { open, gates } = await run();
			const wide = await token();
			const narrow = await token({ aud: SEARCH });
			const client = await open(wide);
			const posted = await client.post(wide, fetchOwl);
			await posted.count(first.length + 1);
			const { cursor } = posted;
			await posted.drop();

			// While the call runs, and when its result is there.
			expect((await client.get(narrow, cursor)).status).toBe(403);
			gates.open("", "turn");
			let refused = await client.get(narrow, cursor);
			while (refused.status === 403) refused = await client.get(narrow, cursor);
			expect(refused.status).toBe(200);
			expect(await refused.closed).toBe("ended");
			expect(told(refused).at(-1)).toBe("- 7 ! reauthorize: audience_not_covered");
			expect(refused.cursor).toBeUndefined();
			expect(refused.bytes.includes(owl)).toBe(false);

			const resumed = await client.get(await token({ aud: FETCH }), cursor);
			expect(await resumed.closed).toBe("ended");
			expect(told(resumed)).toEqual([...(primes ? [`${number(1)} cursor`] : []), `${number(2)} 7 = ${owl}`]);
		});

		test("a resume goes on while the call runs", async () => {
			const { open, gates } = await run();
			const wide = await token();
			const client = await open(wide);
			const posted = await client.post(wide, fetchOwl);
			await posted.count(first.length + 1);
			await posted.drop();

			const resumed = await client.get(wide, posted.cursor);
			expect(resumed.status).toBe(200);
			gates.open("", "turn");

			expect(await resumed.closed).toBe("ended");
			expect(told(resumed)).toEqual([...(primes ? [`${number(1)} cursor`] : []), `${number(2)} 7 = ${owl}`]);
		});
	});
}
