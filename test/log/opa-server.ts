import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { freePort } from "../../examples/fastify/port.ts";
import { findOpa } from "../../scripts/opa.ts";

/** A real OPA, with its decision log on the console. */
export interface OpaServer {
	readonly url: string;
	/** Asks for a rule. @returns what OPA logged of it; `undefined`: masking failed, and it logged nothing */
	decide(rule: string, input: unknown): Promise<Record<string, unknown> | undefined>;
	put(path: string, type: string, body: string): Promise<void>;
	close(): Promise<void>;
}

/** Starts OPA with these options and files. */
export async function startOpa(options: readonly string[]): Promise<OpaServer> {
	const url = `http://127.0.0.1:${await freePort()}`;
	const args = [
		"run",
		"--server",
		`--addr=${url.slice(7)}`,
		"--log-format=json",
		"--set=decision_logs.console=true",
	];
	const opa = spawn(await findOpa(), [...args, ...options], {
		stdio: ["ignore", "ignore", "pipe"],
	});
	const waiting: ((event: Record<string, unknown> | undefined) => void)[] = [];
	let started: () => void;
	const ready = new Promise<void>((resolve) => {
		started = resolve;
	});
	listen(opa, (line) => {
		if (!line.startsWith("{")) return;
		const { msg, ...event } = JSON.parse(line) as Record<string, unknown>;
		if (msg === "Initializing server.") started();
		if (msg === "Decision Log") waiting.shift()?.(event);
		if (/masking failed/.test(String(msg))) waiting.shift()?.(undefined);
	});
	await ready;
	for (let tries = 0; tries < 200; tries++) {
		const isUp = await fetch(`${url}/health`)
			.then(({ ok }) => ok)
			.catch(() => false);
		if (isUp) break;
		await new Promise((resolve) => setTimeout(resolve, 25));
	}

	const send = async (method: string, path: string, type: string, body: string) => {
		const response = await fetch(url + path, { method, headers: { "content-type": type }, body });
		if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
		await response.arrayBuffer();
	};
	return {
		url,
		async decide(rule, input) {
			const logged = new Promise<Record<string, unknown> | undefined>((resolve) => {
				waiting.push(resolve);
			});
			await send("POST", `/v1/data/${rule}`, "application/json", JSON.stringify({ input }));
			return logged;
		},
		put: (path, type, body) => send("PUT", path, type, body),
		async close() {
			opa.kill();
			await once(opa, "exit");
		},
	};
}

function listen({ stderr }: ChildProcess, hear: (line: string) => void): void {
	if (stderr === null) throw new Error("no output");
	createInterface(stderr).on("line", hear);
}
