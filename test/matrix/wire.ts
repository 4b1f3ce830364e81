import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A TCP proxy before a host: the line that can break, and the bytes that came over it. */
export interface Wire {
	/** Its own. */
	readonly port: number;
	/** Every byte that the host has sent, of all connections, as text. */
	readonly bytes: string;
	/** Breaks the connections on which this text has come; resolves when the host has been told. */
	cut(text: string): Promise<void>;
	/** What the host sends from now on over connections on which this text has come is lost; they stay open. */
	stall(text: string): void;
	close(): Promise<void>;
}

interface Line {
	readonly down: Socket;
	readonly up: Socket;
	bytes: string;
	stalled: boolean;
}

export async function startWire(host: number): Promise<Wire> {
	const lines = new Set<Line>();
	const all: Line[] = [];

	const server = createServer((down) => {
		const up = connect(host, "127.0.0.1");
		const line: Line = { down, up, bytes: "", stalled: false };
		lines.add(line);
		all.push(line);
		up.setEncoding("latin1");
		up.on("data", (chunk) => {
			const text = chunk.toString();
			line.bytes += text;
			if (!line.stalled) down.write(text, "latin1");
		});
		down.on("data", (chunk) => up.write(chunk));
		for (const [one, other] of [[down, up] as const, [up, down] as const]) {
			one.on("error", () => undefined);
			one.on("close", () => {
				lines.delete(line);
				other.destroySoon();
			});
		}
	});
	server.listen(0, "127.0.0.1");
	await once(server, "listening");

	const having = (text: string) => [...lines].filter(({ bytes }) => bytes.includes(text));

	return {
		port: (server.address() as AddressInfo).port,
		get bytes() {
			return all.map(({ bytes }) => bytes).join("\n");
		},
		async cut(text) {
			await Promise.all(
				having(text).map(async ({ down, up }) => {
					const closed = once(up, "close");
					down.destroy();
					up.destroy();
					await closed;
				}),
			);
		},
		stall(text) {
			for (const line of having(text)) line.stalled = true;
		},
		async close() {
			const closed = once(server, "close");
			server.close();
			for (const { down } of lines) down.destroy();
			await closed;
		},
	};
}
