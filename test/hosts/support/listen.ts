import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Logger } from "../../../src/hosts/log.ts";

export const silent: Logger = { debug() {}, info() {}, warn() {}, error() {} };

export function originOf(server: { address(): AddressInfo | string | null }): string {
	return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A server of node:http on a port of its own. */
export async function listen(listener: RequestListener): Promise<{ origin: string; server: Server }> {
	const server = createServer(listener).listen(0, "127.0.0.1");
	await once(server, "listening");
	return { origin: originOf(server), server };
}

export async function stop(server: { close(closed: (error?: Error) => void): unknown }): Promise<void> {
	await new Promise<void>((resolve, reject) => {
		server.close((error) => (error === undefined ? resolve() : reject(error)));
	});
}
