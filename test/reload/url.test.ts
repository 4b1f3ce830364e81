import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, describe, expect, it, onTestFinished, test } from "vitest";
import { LIMITS } from "../../src/bundle/archive.ts";
import { compose } from "../../src/bundle/compose.ts";
import type { BundleOptions } from "../../src/bundle/options.ts";
import { createResumeGuard, type ResumeGuard } from "../../src/index.ts";
import { createKeys, noOpa, openWorkshop } from "../bundle/support.ts";
import { callOf, shipped } from "./support.ts";

const wasm = new Uint8Array(readFileSync("src/generated/policy.wasm"));
const quick = { minDelaySeconds: 0.01, maxDelaySeconds: 0.02 };

function bundleOf(revision: string, changes: object = {}): Promise<Uint8Array> {
	return compose({ data: { ...shipped, ...changes }, wasm, rules: [], tests: {}, revision });
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** Serves bundles; what it answers may change. */
async function serve(handler: Handler) {
	const requests: IncomingMessage[] = [];
	const state = { handler };
	const server = createServer((request, response) => {
		requests.push(request);
		state.handler(request, response);
	}).listen(0, "127.0.0.1");
	await once(server, "listening");
	onTestFinished(() => {
		server.closeAllConnections();
		server.close();
	});
	const { port } = server.address() as AddressInfo;
	return { origin: `http://127.0.0.1:${port}`, requests, state };
}

/** Answers as a web server does that knows validators. */
function answer(bundle: Uint8Array, etag?: string): Handler {
	return (request, response) => {
		if (etag !== undefined && request.headers["if-none-match"] === etag)
			return void response.writeHead(304).end();
		response
			.writeHead(200, { "content-type": "application/gzip", ...(etag !== undefined && { etag }) })
			.end(bundle);
	};
}

async function watching(bundle: BundleOptions): Promise<ResumeGuard> {
	const guard = await createResumeGuard({
		bundle: { polling: quick, ...bundle },
		watch: true,
		onReloadError: () => {},
	});
	onTestFinished(() => guard.close());
	return guard;
}

test("a bundle of a URL is asked for by its validator, and a new one takes effect", async () => {
	const { origin, requests, state } = await serve(answer(await bundleOf("1"), '"one"'));
	const guard = await watching({ source: `${origin}/b.tar.gz`, headers: { authorization: "Bearer x" } });
	expect(guard.revision).toBe("1");
	expect(requests[0]?.headers).toMatchObject({ authorization: "Bearer x", "accept-encoding": "identity" });
	expect(requests[0]?.headers).not.toHaveProperty("if-none-match");
	await expect.poll(() => requests.length).toBeGreaterThan(3);
	expect(requests.slice(1).every(({ headers }) => headers["if-none-match"] === '"one"')).toBe(true);

	state.handler = answer(await bundleOf("2", { profile: "strict" }), 'W/"two"');
	await expect.poll(() => guard.revision).toBe("2");
	expect(guard.data.profile).toBe("strict");
	await expect.poll(() => requests.at(-1)?.headers["if-none-match"]).toBe('W/"two"');
});

test("without a validator it is fetched each time, and the same is no new revision", async () => {
	const { origin, requests } = await serve(answer(await bundleOf("1")));
	const guard = await watching({ source: new URL(`${origin}/b.tar.gz`) });
	let revisions = 0;
	guard.onRevision(() => revisions++);
	await expect.poll(() => requests.length).toBeGreaterThan(4);
	expect(revisions).toBe(0);
	expect(guard.status().lastError).toBeUndefined();
});

describe("what is not good leaves the last good in force, and is asked for again", () => {
	it.each<[string, string, RegExp, (origin: string) => Handler | Promise<Handler>]>([
		[
			"an error of the server",
			"bundle_unavailable",
			/status 503$/,
			() => (_, response) => void response.writeHead(503).end("no"),
		],
		[
			"no such bundle",
			"bundle_unavailable",
			/status 404$/,
			() => (_, response) => void response.writeHead(404).end(),
		],
		[
			"a connection that breaks",
			"bundle_unavailable",
			/cannot be fetched/,
			() =>
				({ socket }) =>
					void socket.destroy(),
		],
		[
			"a body that breaks off",
			"bundle_unavailable",
			/cannot be fetched/,
			() => (_, response) => {
				response.writeHead(200, { "content-length": "1000" });
				response.write("x", () => response.destroy());
			},
		],
		["no bundle", "bundle_invalid", /not gzipped/, () => answer(Buffer.from("<html>"))],
		[
			"half a bundle",
			"bundle_invalid",
			/not gzipped/,
			async () => answer((await bundleOf("2")).subarray(0, 5000)),
		],
		[
			"data that break the schema",
			"data_invalid",
			/profile/,
			async () => answer(await bundleOf("2", { profile: "none" }), '"bad"'),
		],
		[
			"a body that does not end",
			"bundle_too_large",
			/more than 16777216 bytes$/,
			() => (_, response) => {
				const chunk = Buffer.alloc(1 << 20);
				const more = () => {
					while (!response.destroyed && response.write(chunk));
					response.once("drain", more);
				};
				response.writeHead(200);
				more();
			},
		],
		[
			"not modified, where nothing was asked so",
			"bundle_unavailable",
			/status 304$/,
			() => (_, response) => void response.writeHead(304).end(),
		],
		[
			"a redirect to another origin",
			"bundle_unavailable",
			/redirect to another origin$/,
			(origin) => (_, response) =>
				void response.writeHead(302, { location: origin.replace("127.0.0.1", "localhost") }).end(),
		],
		[
			"a redirect to a file",
			"bundle_unavailable",
			/redirect to another origin$/,
			() => (_, response) => void response.writeHead(302, { location: "file:///etc/passwd" }).end(),
		],
		[
			"redirects without an end",
			"bundle_unavailable",
			/too many redirects$/,
			() => (_, response) => void response.writeHead(307, { location: "/again" }).end(),
		],
	])("%s", async (_, code, message, bad) => {
		const { origin, requests, state } = await serve(answer(await bundleOf("1")));
		const guard = await watching({ source: `${origin}/b.tar.gz?sig=s3cr3t` });
		state.handler = await bad(origin);
		await expect
			.poll(() => guard.status().lastError)
			.toEqual({ code, message: expect.stringMatching(message) });
		expect(guard.status().lastError?.message).not.toContain("s3cr3t");
		expect(guard).toMatchObject({ revision: "1" });
		expect(guard.call(callOf("search")).outcome).toBe("proceed");
		const { length } = requests;
		await expect.poll(() => requests.length).toBeGreaterThan(length);
		state.handler = answer(await bundleOf("3"));
		await expect.poll(() => guard.revision).toBe("3");
		expect(guard.status().lastError).toBeUndefined();
	});

	it("at creation it is why there is no guard", async () => {
		const { origin } = await serve((_, response) => void response.writeHead(500).end());
		const failed = createResumeGuard({ bundle: `${origin}/b.tar.gz?sig=s3cr3t` });
		await expect(failed).rejects.toMatchObject({
			name: "ResumeGuardError",
			code: "bundle_unavailable",
			message: `the bundle ${origin}/b.tar.gz cannot be fetched: status 500`,
		});
	});
});

test("a redirect within the origin is followed", async () => {
	const bundle = await bundleOf("1");
	const { origin, requests } = await serve((request, response) => {
		if (request.url === "/latest") response.writeHead(302, { location: "v1/b.tar.gz" }).end();
		else response.writeHead(200).end(bundle);
	});
	const guard = await createResumeGuard({
		bundle: { source: `${origin}/latest`, headers: { authorization: "x" } },
	});
	expect(guard.revision).toBe("1");
	expect(requests.map(({ url, headers }) => [url, headers.authorization])).toEqual([
		["/latest", "x"],
		["/v1/b.tar.gz", "x"],
	]);
});

test("one that is too large is not read to its end", async () => {
	let sent = 0;
	const { origin } = await serve((_, response) => {
		const chunk = Buffer.alloc(1 << 20);
		const more = () => {
			while (!response.destroyed && response.write(chunk)) sent += chunk.length;
			response.once("drain", more);
		};
		more();
	});
	await expect(createResumeGuard({ bundle: origin })).rejects.toMatchObject({ code: "bundle_too_large" });
	expect(sent).toBeLessThan(2 * LIMITS.packed);
});

test("after failures the pauses grow, up to the longest", async () => {
	const times: number[] = [];
	const { origin, state } = await serve(answer(await bundleOf("1")));
	const guard = await watching({ source: origin, polling: { minDelaySeconds: 0.01, maxDelaySeconds: 0.3 } });
	state.handler = (_, response) => {
		times.push(performance.now());
		response.writeHead(500).end();
	};
	await expect.poll(() => times.length, { timeout: 5000 }).toBeGreaterThan(4);
	guard.close();
	const pauses = times.slice(1).map((time, index) => time - (times[index] ?? 0));
	// A second, or the longest if that is less; half of it at least.
	for (const pause of pauses) expect(pause).toBeGreaterThan(140);
});

test("closed, it asks no more, also not what it is just asking", async () => {
	const { origin, requests, state } = await serve(answer(await bundleOf("1")));
	const guard = await watching({ source: origin });
	const asked = new Promise<IncomingMessage>((resolve) => {
		state.handler = resolve;
	});
	const { socket } = await asked;
	guard.close();
	await once(socket, "close");
	const { length } = requests;
	await new Promise((resolve) => setTimeout(resolve, 100));
	expect(requests.length).toBe(length);
	expect(guard.status().lastError).toBeUndefined();
});

describe.skipIf(noOpa)("needs OPA: bundles that OPA has signed", () => {
	const workshop = openWorkshop();
	afterAll(workshop.remove);
	const keys = createKeys("ES256");
	const { publicKey: key, algorithm } = keys;
	const verification = { keys: { default: { key, algorithm } } };

	it("take effect, and neither an older, nor an unsigned, nor another's does", async () => {
		const build = (sequence: number, signing?: typeof keys) =>
			workshop.build({
				manifest: { roots: ["mcp"], metadata: { mcp_resume_guard: { sequence } } },
				args: ["--revision", `r${sequence}`],
				...(signing !== undefined && { signing }),
			});
		const { origin, state } = await serve(answer(await build(5, keys), '"5"'));
		const floorFile = workshop.path("floor.json");
		const guard = await watching({ source: origin, verification, rollback: { floorFile } });
		expect(guard.status()).toMatchObject({ revision: "r5", sequence: 5 });
		const bad: [Promise<Uint8Array>, string][] = [
			[build(4, keys), "bundle_outdated"],
			[build(6), "bundle_unsigned"],
			[build(7, createKeys("ES256")), "bundle_signature_invalid"],
		];
		for (const [bundle, code] of bad) {
			state.handler = answer(await bundle, `"${code}"`);
			await expect.poll(() => guard.status().lastError?.code).toBe(code);
			expect(guard.status()).toMatchObject({ revision: "r5", sequence: 5 });
		}
		state.handler = answer(await build(6, keys), '"6"');
		await expect.poll(() => guard.status().revision).toBe("r6");
		expect(JSON.parse(readFileSync(floorFile, "utf8"))).toEqual({ sequence: 6 });
	});
});
