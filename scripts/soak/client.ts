import { setTimeout as sleep } from "node:timers/promises";
import { framesOf } from "../../examples/demo/recorder.ts";

const VERSION = "2025-11-25";

/** What clients have met, by what it was. */
export interface Met {
	readonly counts: Map<string, number>;
	/** What nothing that the client did explains. */
	readonly unexplained: string[];
}

export interface Tokens {
	readonly wide: string;
	/** Covers `search`, which is called. */
	readonly narrow: string;
	/** Covers `fetch` only. */
	readonly other: string;
	readonly stranger: string;
}

/** One client, which calls, drops, comes back with one token or another, and checks that it has each event once. */
export async function runClient(
	mcp: string,
	tokens: Tokens,
	random: () => number,
	until: number,
	met: Met,
): Promise<void> {
	let session: string | undefined;
	let id = 0;
	const count = (what: string) => met.counts.set(what, (met.counts.get(what) ?? 0) + 1);

	function request(
		method: string,
		token: string,
		more: Record<string, string>,
		body?: object,
		signal?: AbortSignal,
	): Promise<Response> {
		const headers = {
			authorization: `Bearer ${token}`,
			accept: method === "GET" ? "text/event-stream" : "application/json, text/event-stream",
			"content-type": "application/json",
			"mcp-protocol-version": VERSION,
			...(session !== undefined && { "mcp-session-id": session }),
			...more,
		};
		return fetch(mcp, {
			method,
			headers,
			...(body && { body: JSON.stringify(body) }),
			...(signal && { signal }),
		});
	}

	async function open(): Promise<void> {
		const params = {
			protocolVersion: VERSION,
			capabilities: {},
			clientInfo: { name: "soak", version: "1.0.0" },
		};
		const response = await request(
			"POST",
			tokens.wide,
			{},
			{ jsonrpc: "2.0", id: 0, method: "initialize", params },
		);
		await response.text();
		if (response.status !== 200) return unexplained(`initialize: ${response.status}`);
		session = response.headers.get("mcp-session-id") ?? undefined;
		await (
			await request("POST", tokens.wide, {}, { jsonrpc: "2.0", method: "notifications/initialized" })
		).text();
		count("sessions");
	}

	function unexplained(what: string): void {
		met.unexplained.push(what);
	}

	/** Reads a stream to its end, or leaves after `events` of them. */
	async function read(
		response: Response,
		leave: AbortController,
		events: number,
	): Promise<{ text: string; isWhole: boolean }> {
		let text = "";
		const decoder = new TextDecoder();
		try {
			for await (const chunk of response.body ?? []) {
				text += decoder.decode(chunk, { stream: true });
				if (framesOf(text).length < events) continue;
				// What came after it is as good as not received.
				text = `${text.split("\n\n").slice(0, events).join("\n\n")}\n\n`;
				leave.abort();
				// Not left to the loop: fetch of Node 20 may never end it, where the end comes with the abort.
				return { text, isWhole: false };
			}
			return { text, isWhole: true };
		} catch {
			return { text, isWhole: false };
		}
	}

	async function call(): Promise<void> {
		id += 1;
		const pages = 2 + Math.floor(random() * 30);
		const params = { name: "search", arguments: { query: "q", pages }, _meta: { progressToken: id } };
		let leave = new AbortController();
		const drops = random() < 0.7;
		let response = await request(
			"POST",
			tokens.wide,
			{},
			{ jsonrpc: "2.0", id, method: "tools/call", params },
			leave.signal,
		);
		if (response.status !== 200) return unexplained(`call: ${response.status} ${await response.text()}`);
		let { text, isWhole } = await read(
			response,
			leave,
			drops ? 1 + Math.floor(random() * 5) : Number.POSITIVE_INFINITY,
		);
		count(isWhole ? "calls" : "drops");
		for (let attempt = 0; !isWhole; attempt += 1) {
			const cursor = framesOf(text).findLast(({ id }) => id !== undefined && id !== "")?.id;
			if (cursor === undefined) return void count("dropped before the first event");
			if (random() < 0.2) await refused(cursor);
			leave = new AbortController();
			const token = random() < 0.5 ? tokens.wide : tokens.narrow;
			response = await request("GET", token, { "last-event-id": cursor }, undefined, leave.signal);
			if (response.status === 410) return void count("evicted");
			// All has come but the end, which is checked below.
			if (response.status === 204) break;
			if (response.status !== 200) return unexplained(`resume: ${response.status} ${await response.text()}`);
			count("resumes");
			const more = await read(
				response,
				leave,
				attempt < 2 && random() < 0.5 ? 1 + Math.floor(random() * 5) : Number.POSITIVE_INFINITY,
			);
			text += more.text;
			isWhole = more.isWhole;
		}
		check(text, pages);
	}

	/** A token that does not cover what waits: always refused, and nothing is lost by it. */
	async function refused(cursor: string): Promise<void> {
		const response = await request("GET", tokens.other, { "last-event-id": cursor });
		const body = await response.text();
		const isError = response.status === 200 && body.includes("-32043") && !body.includes("pages about");
		if (response.status === 403 || isError) count("refusals");
		else if (response.status === 204) count("nothing left to refuse");
		else if (response.status !== 410) unexplained(`refusal: ${response.status} ${body}`);
	}

	function check(text: string, pages: number): void {
		if (text.includes("cursor_evicted")) return void count("evicted");
		const messages = framesOf(text)
			.filter(({ data }) => data !== "")
			.map(({ data }) => JSON.parse(data) as { method?: string; params?: { progress: number } });
		const progress = messages.flatMap(({ method, params }) =>
			method === "notifications/progress" && params ? [params.progress] : [],
		);
		const wanted = Array.from({ length: pages }, (_, index) => index + 1);
		const isRight =
			JSON.stringify(progress) === JSON.stringify(wanted) && text.split("pages about").length === 2;
		if (isRight) count("whole results");
		else unexplained(`result: ${pages} pages, got ${JSON.stringify(progress)}`);
	}

	while (Date.now() < until) {
		if (session === undefined) await open();
		await call();
		if (random() < 0.02) {
			const response = await request("GET", tokens.stranger, {});
			await response.text();
			if (response.status !== 403) unexplained(`stranger: ${response.status}`);
			count("strangers");
			session = undefined;
		} else if (random() < 0.03) {
			const response = await request("DELETE", tokens.wide, {});
			if (response.status !== 204) unexplained(`DELETE: ${response.status}`);
			session = undefined;
		}
		await sleep(random() * 5);
	}
	if (session !== undefined) await request("DELETE", tokens.wide, {});
}
