import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const script = `
	import { createMemoryEventLog } from "./src/events/memory.ts";
	import { createMemorySessionStore } from "./src/sessions/memory.ts";
	const store = createMemorySessionStore();
	await store.open({ key: "k", binding: { anonymous: true }, transport: "sse", opened_at: 0 });
	await store.repeated("k", "s", "x", 60);
	await store.find("k");
	const log = createMemoryEventLog();
	await log.open("k", "anonymous");
	await log.append("k", "s", { message: "{}", label: { aud: [], scope: [] } });
	console.log(log.stats().events);
`;

test("a process with sessions and events exits when it has nothing else to do", async () => {
	const args = ["--import", "tsx", "--input-type=module", "--eval", script];
	const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 20_000 });
	expect(stdout).toBe("1\n");
}, 30_000);
