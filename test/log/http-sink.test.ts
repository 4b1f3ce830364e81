import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type RequestListener } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { inspect } from "node:util";
import { gunzipSync } from "node:zlib";
import selfsigned from "selfsigned";
import { describe, expect, it, onTestFinished } from "vitest";
import {
	createDecisionLog,
	type DecisionLogEvent,
	type DecisionLogProblem,
	httpSink,
} from "../../src/log/index.ts";
import { eventOf } from "./support.ts";

interface Upload {
	readonly url: string | undefined;
	readonly method: string | undefined;
	readonly headers: IncomingHttpHeaders;
	readonly records: DecisionLogEvent[];
}

/** A service that takes uploads as OPA's do; `answer` says with what status, or `undefined` for never. */
async function startService(
	answer: (upload: Upload, nth: number) => number | undefined = () => 200,
	tls?: { key: string; cert: string },
) {
	const uploads: Upload[] = [];
	const listener: RequestListener = (request, response) => {
		const chunks: Buffer[] = [];
		request.on("data", (chunk) => chunks.push(chunk));
		request.on("end", () => {
			const { url, method, headers } = request;
			const upload = {
				url,
				method,
				headers,
				records: JSON.parse(gunzipSync(Buffer.concat(chunks)).toString()),
			};
			uploads.push(upload);
			const status = answer(upload, uploads.length);
			if (status !== undefined)
				response.writeHead(status, { location: "/elsewhere" }).end("x".repeat(100_000));
		});
	};
	const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
	server.listen(0, "127.0.0.1");
	await once(server, "listening");
	onTestFinished(async () => {
		server.close();
		server.closeAllConnections();
	});
	const { port } = server.address() as AddressInfo;
	return { url: `${tls === undefined ? "http" : "https"}://127.0.0.1:${port}`, uploads };
}

async function startLog(options: Parameters<typeof httpSink>[0], limits = {}) {
	const problems: DecisionLogProblem[] = [];
	const log = await createDecisionLog({
		sinks: [httpSink(options)],
		limits,
		onProblem: (problem) => void problems.push(problem),
	});
	onTestFinished(() => log.close(0.1));
	return {
		log,
		problems,
		async send(events: number, deadline?: number) {
			for (let i = 0; i < events; i++) log.record(eventOf({ revision: `${i}` }));
			await log.flush(deadline);
			return log.stats().sinks[0];
		},
	};
}

const revisions = (uploads: readonly Upload[]) =>
	uploads.flatMap(({ records }) => records.map(({ revision }) => revision));
const upTo = (n: number) => Array.from({ length: n }, (_, index) => `${index}`);

describe("an upload", () => {
	it("is what OPA's decision-log service takes: a JSON array, compressed, at /logs", async () => {
		const { url, uploads } = await startService();
		const { send } = await startLog({ url, authorization: async () => "Bearer t0ken" });
		expect(await send(3)).toMatchObject({ name: "http", written: 3, lost: 0, dropped: 0, retried: 0 });
		expect(uploads).toHaveLength(1);
		expect(uploads[0]).toMatchObject({
			url: "/logs",
			method: "POST",
			headers: {
				"content-type": "application/json",
				"content-encoding": "gzip",
				authorization: "Bearer t0ken",
			},
			records: upTo(3).map((revision) => ({ revision, path: "mcp/call/decision" })),
		});
	});

	it("goes to the partition, below the path of the service", async () => {
		const { url, uploads } = await startService();
		await (await startLog({ url: `${url}/base/`, partition: "a b/../c" })).send(1);
		expect(uploads[0]?.url).toBe("/base/logs/a%20b%2F..%2Fc");
	});

	it("has no more bytes than was said", async () => {
		const { url, uploads } = await startService();
		const { send } = await startLog({ url, batchBytes: 2_000 });
		await send(20);
		expect(uploads.length).toBeGreaterThan(5);
		for (const { records } of uploads) expect(JSON.stringify(records).length).toBeLessThanOrEqual(2_001);
		expect(revisions(uploads)).toEqual(upTo(20));
	});

	it("waits for more records, unless it is full", async () => {
		const { url, uploads } = await startService();
		const { log } = await startLog({ url, delay: 60, batchBytes: 2_000 });
		log.record(eventOf());
		await new Promise((resolve) => setTimeout(resolve, 50));
		expect(uploads).toHaveLength(0);
		for (let i = 0; i < 10; i++) log.record(eventOf());
		while (uploads.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
	});

	it("asks for its authorization each time", async () => {
		const { url, uploads } = await startService((_, nth) => (nth === 1 ? 401 : 200));
		let asked = 0;
		const { send } = await startLog({ url, authorization: () => `Bearer ${++asked}` });
		await send(1);
		expect(uploads.map(({ headers }) => headers.authorization)).toEqual(["Bearer 1", "Bearer 2"]);
	});

	it("is encrypted, for a service whose certificate is good", async () => {
		const { private: key, cert } = await selfsigned.generate([{ name: "commonName", value: "127.0.0.1" }], {
			extensions: [{ name: "subjectAltName", altNames: [{ type: 7, ip: "127.0.0.1" }] }],
		});
		const { url, uploads } = await startService(undefined, { key, cert });
		expect(await (await startLog({ url, ca: cert })).send(1)).toMatchObject({ written: 1 });
		expect(uploads).toHaveLength(1);
		const { send, problems } = await startLog({ url });
		expect(await send(1, 0.2)).toMatchObject({ written: 0, buffered: 1 });
		expect(uploads).toHaveLength(1);
		expect(problems[0]).toMatchObject({ error: { code: "log_unavailable" } });
	});
});

describe("a service that does not take it", () => {
	it.each([500, 503, 429, 404, 403, 302])(
		"is asked again after %s, with the same records and then the others",
		async (status) => {
			const { url, uploads } = await startService((_, nth) => (nth <= 2 ? status : 200));
			const { send, problems } = await startLog({ url });
			expect(await send(2)).toMatchObject({ written: 2, retried: 2, lost: 0 });
			expect(uploads).toHaveLength(3);
			expect(new Set(uploads.map(({ records }) => JSON.stringify(records))).size).toBe(1);
			expect(problems).toMatchObject([
				{ kind: "retried", sink: "http", error: { message: expect.stringContaining(`${status}`) } },
			]);
			// A redirect is not followed: the token would go with it.
			expect(uploads.every(({ url }) => url === "/logs")).toBe(true);
		},
	);

	it.each([400, 422])("is not asked again after %s", async (status) => {
		const { url, uploads } = await startService((_, nth) => (nth === 1 ? status : 200));
		const { send } = await startLog({ url });
		expect(await send(2)).toMatchObject({ written: 0, lost: 2 });
		expect(await send(1)).toMatchObject({ written: 1, lost: 2 });
		expect(uploads).toHaveLength(2);
	});

	it("gets less at once after 413, and nothing twice", async () => {
		const taken: (string | undefined)[] = [];
		const { url } = await startService(({ records }) => {
			if (records.length > 3) return 413;
			taken.push(...records.map(({ revision }) => revision));
			return 200;
		});
		const { send } = await startLog({ url });
		expect(await send(10)).toMatchObject({ written: 10, lost: 0 });
		expect(taken).toEqual(upTo(10));
	});

	it("loses what is too large by itself, and only that", async () => {
		const { url } = await startService(({ records }) =>
			records.some(({ revision }) => revision === "1") ? 413 : 200,
		);
		const { send } = await startLog({ url, batchBytes: 1 });
		expect(await send(3)).toMatchObject({ written: 2, lost: 1 });
	});

	it("does not answer: the upload ends, and is tried again", async () => {
		const { url, uploads } = await startService((_, nth) => (nth === 1 ? undefined : 200));
		const { send } = await startLog({ url, timeout: 0.1 });
		expect(await send(1)).toMatchObject({ written: 1, retried: 1 });
		expect(uploads).toHaveLength(2);
	});

	it("is not there", async () => {
		const { send, problems } = await startLog({ url: "http://127.0.0.1:1" });
		expect(await send(1, 0.1)).toMatchObject({ written: 0, buffered: 1 });
		expect(problems[0]).toMatchObject({ error: { message: expect.stringContaining("ECONNREFUSED") } });
	});

	it("cannot be authorized to: nothing of the callback's error is told", async () => {
		const { url, uploads } = await startService();
		for (const authorization of [
			() => {
				throw new Error("S3CRET");
			},
			() => Promise.reject(new Error("S3CRET")),
			() => "Bearer S3CRET\r\nx: y",
		]) {
			const { send, problems } = await startLog({ url, authorization });
			expect(await send(1, 0.1)).toMatchObject({ written: 0, buffered: 1 });
			expect(problems).toMatchObject([{ kind: "retried", error: { code: "log_unavailable" } }]);
			expect(inspect(problems)).not.toContain("S3CRET");
		}
		const { send } = await startLog({ url, timeout: 0.05, authorization: () => new Promise(() => {}) });
		expect(await send(1, 0.2)).toMatchObject({ written: 0, buffered: 1 });
		expect(uploads).toHaveLength(0);
	});

	it("keeps no process alive", async () => {
		const { url, uploads } = await startService(() => undefined);
		const script = `
			import { createDecisionLog, httpSink } from "mcp-resume-guard/log";
			import { eventOf } from ${JSON.stringify(join(import.meta.dirname, "support.ts"))};
			for (const url of [${JSON.stringify(url)}, "http://127.0.0.1:1"]) {
				const log = await createDecisionLog({ sinks: [httpSink({ url, delay: 0 })], onProblem() {} });
				log.record(eventOf());
				setTimeout(() => {}, 300);
			}
		`;
		const child = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "--eval", script], {
			stdio: ["ignore", "inherit", "inherit"],
			cwd: process.cwd(),
		});
		const start = performance.now();
		const [code] = await once(child, "exit");
		expect(code).toBe(0);
		expect(performance.now() - start).toBeLessThan(9_000);
		expect(uploads).toHaveLength(1);
	});

	it("is flushed to at the end", async () => {
		const { url, uploads } = await startService();
		const { log } = await startLog({ url, delay: 60 });
		for (let i = 0; i < 5; i++) log.record(eventOf({ revision: `${i}` }));
		await log.close();
		expect(revisions(uploads)).toEqual(upTo(5));
		expect(log.stats().sinks[0]).toMatchObject({ written: 5, dropped: 0 });
	});
});

it.each([
	["no URL", "logs"],
	["http to elsewhere", "http://logs.example.com"],
	["http to a name that begins like loopback", "http://127.0.0.1.example.com"],
	["http to localhost of somebody", "http://localhost.example.com"],
	["another scheme", "ftp://127.0.0.1"],
	["a file", "file:///tmp/x"],
	["credentials", "https://user:secret@logs.example.com"],
	["a query", "https://logs.example.com?key=1"],
	["a fragment", "https://logs.example.com#x"],
])("throws TypeError for a URL with %s", (_, url) => {
	expect(() => httpSink({ url })).toThrow(TypeError);
});

it("throws TypeError for wrong options", () => {
	for (const wrong of [
		{ delay: -1 },
		{ timeout: "1" },
		{ batchBytes: Number.NaN },
		{ authorization: "Bearer x" },
	]) {
		expect(() => httpSink({ url: "https://logs.example.com", ...(wrong as object) })).toThrow(TypeError);
	}
});
