import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Facts } from "mcp-resume-guard";

/** OPA as a server on loopback, with the policies and data of this package, asked over one connection. */
export interface OpaServer {
	decide(facts: Facts): Promise<unknown>;
	close(): Promise<void>;
}

/** @param opa its path */
export async function startOpaServer(opa: string): Promise<OpaServer> {
	const port = await freePort();
	const flags = ["--addr", `127.0.0.1:${port}`, "--log-level", "error", "--skip-version-check"];
	const server = spawn(opa, ["run", "--server", ...flags, "policies"], {
		stdio: ["ignore", "ignore", "pipe"],
	});
	let complaint = "";
	server.stderr.on("data", (chunk: Buffer) => {
		complaint += chunk;
	});
	const agent = new Agent({ keepAlive: true, maxSockets: 1 });
	const ask = (method: string, path: string, body: string) => send(agent, port, method, path, body);
	await ready(
		server,
		() => ask("GET", "/health", ""),
		() => complaint,
	);
	return {
		async decide(facts) {
			const input = JSON.stringify({ input: facts });
			const { result } = JSON.parse(await ask("POST", `/v1/data/mcp/${facts.moment}/decision`, input));
			return result;
		},
		async close() {
			agent.destroy();
			server.kill();
			await once(server, "exit");
		},
	};
}

async function ready(
	server: ChildProcess,
	ask: () => Promise<unknown>,
	complaint: () => string,
): Promise<void> {
	for (let attempt = 0; attempt < 2000; attempt += 1) {
		if (server.exitCode !== null) throw new Error(`opa ended with ${server.exitCode}: ${complaint()}`);
		try {
			await ask();
			return;
		} catch {
			await sleep(5);
		}
	}
	throw new Error("opa does not answer");
}

function send(agent: Agent, port: number, method: string, path: string, body: string): Promise<string> {
	return new Promise((resolve, reject) => {
		const sent = request({ agent, host: "127.0.0.1", port, method, path }, (response) => {
			let text = "";
			response.setEncoding("utf8");
			response.on("data", (chunk: string) => {
				text += chunk;
			});
			response.on("end", () => resolve(text));
			response.on("error", reject);
		});
		sent.on("error", reject);
		sent.end(body);
	});
}

async function freePort(): Promise<number> {
	const server = createServer().listen(0, "127.0.0.1");
	await once(server, "listening");
	const address = server.address();
	server.close();
	await once(server, "close");
	if (address === null || typeof address === "string") throw new Error("no port");
	return address.port;
}
