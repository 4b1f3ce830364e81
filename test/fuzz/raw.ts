import { once } from "node:events";
import { connect } from "node:net";

/** The answer to bytes that were sent as they are; `undefined` status: the connection was closed without one. */
export interface RawAnswer {
	readonly status: number | undefined;
	readonly text: string;
}

/** Sends bytes over a connection of its own, and reads until it is closed or nothing has come for a while. */
export async function sendRaw(port: number, bytes: Buffer, quiet = 400): Promise<RawAnswer> {
	const socket = connect(port, "127.0.0.1");
	let text = "";
	socket.setTimeout(quiet, () => socket.destroy());
	socket.on("data", (chunk: Buffer) => {
		text += chunk.toString("latin1");
		// The head, and the body of whatever is no stream.
		if (isWhole(text)) socket.destroy();
	});
	socket.on("error", () => undefined);
	await once(socket, "connect");
	socket.write(bytes);
	await new Promise<void>((resolve) => socket.once("close", () => resolve()));
	const [, status] = /^HTTP\/1\.1 (\d{3})/.exec(text) ?? [];
	return { status: status === undefined ? undefined : Number(status), text };
}

function isWhole(text: string): boolean {
	const end = text.indexOf("\r\n\r\n");
	if (end === -1) return false;
	const [, length] = /\r\ncontent-length: (\d+)/i.exec(text.slice(0, end)) ?? [];
	return length !== undefined && text.length >= end + 4 + Number(length);
}

/** A request head as bytes: names and values go out as they are, whatever is in them. */
export function head(method: string, path: string, headers: readonly (readonly [string, string])[]): string {
	const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`);
	return `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n${lines.join("")}\r\n`;
}
