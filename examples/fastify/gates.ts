/** Places at which the tools of the example wait until they are let go on, so that a drop can be played at a known place. */
export interface Gates {
	/** Resolves when that gate of the session is opened, or has been. */
	pass(session: string, name: string): Promise<void>;
	open(session: string, name: string): void;
}

export function createGates(): Gates {
	const gates = new Map<string, { opened: Promise<void>; open: () => void }>();

	function gate(session: string, name: string) {
		const key = JSON.stringify([session, name]);
		const known = gates.get(key);
		if (known !== undefined) return known;
		let open = () => {};
		const opened = new Promise<void>((resolve) => {
			open = resolve;
		});
		gates.set(key, { opened, open });
		return { opened, open };
	}

	return {
		pass: (session, name) => gate(session, name).opened,
		open: (session, name) => gate(session, name).open(),
	};
}
