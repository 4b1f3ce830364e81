import type { Sink } from "../../../src/wire/answer.ts";

/** What a client reads of one event of an SSE stream. */
export interface Frame {
	readonly event?: string;
	readonly id?: string;
	readonly data?: string;
}

/** A connection's body, as the client has it. */
export interface Reader {
	readonly sink: Sink;
	readonly frames: Frame[];
	/** `end`: cleanly. `cut`: by the server, not cleanly. `left`: by the client. */
	state(): "open" | "end" | "cut" | "left";
	leave(): void;
}

/**
 * @param isEnough asked after each frame; when it is, the client leaves
 */
export function createReader(isEnough: (frames: readonly Frame[]) => boolean = () => false): Reader {
	const frames: Frame[] = [];
	const listeners: (() => void)[] = [];
	let state: ReturnType<Reader["state"]> = "open";
	const close = (how: typeof state) => {
		if (state !== "open") return;
		state = how;
		for (const listener of listeners) listener();
	};
	return {
		frames,
		state: () => state,
		leave: () => close("left"),
		sink: {
			async write(text) {
				if (state !== "open") return;
				frames.push(...parse(text));
				if (isEnough(frames)) close("left");
			},
			end: () => close("end"),
			cut: () => close("cut"),
			isOpen: () => state === "open",
			onClose: (listener) => void (state === "open" ? listeners.push(listener) : listener()),
		},
	};
}

// HTML Living Standard section 9.2.6, as far as it is used here.
function parse(text: string): Frame[] {
	return text
		.split("\n\n")
		.filter((block) => block !== "" && !block.startsWith(":"))
		.map((block) => {
			const lines = block.split("\n").map((line) => line.split(/: ?(.*)/s, 2) as [string, string]);
			return Object.fromEntries(lines) as Frame;
		});
}
