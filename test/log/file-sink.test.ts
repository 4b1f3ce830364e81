import { execFileSync } from "node:child_process";
import {
	chmodSync,
	existsSync,
	mkdirSync,
	readFileSync,
	renameSync,
	statSync,
	symlinkSync,
	unlinkSync,
	writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
	createDecisionLog,
	type DecisionLogProblem,
	fileSink,
	readDecisionLogEvent,
} from "../../src/log/index.ts";
import { inTemporaryFolder } from "../temporary.ts";
import { eventOf } from "./support.ts";

const revisionsIn = (path: string) =>
	readFileSync(path, "utf8")
		.trimEnd()
		.split("\n")
		.map((line) => {
			const read = readDecisionLogEvent(line);
			return "record" in read ? read.record.revision : read.problem;
		});

async function withLog(
	use: (at: {
		path: string;
		folder: string;
		write: (...revisions: string[]) => Promise<void>;
		problems: DecisionLogProblem[];
	}) => Promise<void>,
) {
	await inTemporaryFolder([], async (folder) => {
		const path = join(folder, "decisions.jsonl");
		const problems: DecisionLogProblem[] = [];
		const log = await createDecisionLog({
			sinks: [fileSink(path)],
			onProblem: (problem) => void problems.push(problem),
		});
		const write = async (...revisions: string[]) => {
			for (const revision of revisions) log.record(eventOf({ revision }));
			await log.flush(0.5);
		};
		try {
			await use({ path, folder, write, problems });
		} finally {
			await log.close();
		}
	});
}

describe("the file of a decision log", () => {
	it("has one record a line, and is for its owner only", () =>
		withLog(async ({ path, write }) => {
			await write("1", "2");
			await write("3");
			expect(revisionsIn(path)).toEqual(["1", "2", "3"]);
			expect(readFileSync(path, "utf8").endsWith("\n")).toBe(true);
			expect(statSync(path).mode & 0o777).toBe(0o600);
		}));

	it("is created when there is something to write", () =>
		withLog(async ({ path, write }) => {
			await write();
			expect(existsSync(path)).toBe(false);
		}));

	it("is appended to, with the rights that it has", () =>
		withLog(async ({ path, write }) => {
			writeFileSync(path, '{"old": 1}\n');
			chmodSync(path, 0o640);
			await write("1");
			expect(revisionsIn(path)).toEqual(["/decision_id: must be string", "1"]);
			expect(statSync(path).mode & 0o777).toBe(0o640);
		}));

	it("goes on with a new line after one that was broken off", () =>
		withLog(async ({ path, write }) => {
			writeFileSync(path, '{"old": 1}\n{"half');
			await write("1");
			expect(revisionsIn(path)).toEqual(["/decision_id: must be string", "not JSON", "1"]);
		}));

	it("is created again when it has been moved away, or removed", () =>
		withLog(async ({ path, write }) => {
			await write("1");
			renameSync(path, `${path}.1`);
			await write("2");
			unlinkSync(path);
			await write("3");
			expect(revisionsIn(`${path}.1`)).toEqual(["1"]);
			expect(revisionsIn(path)).toEqual(["3"]);
			expect(statSync(path).mode & 0o777).toBe(0o600);
		}));

	it("is waited for while it cannot be written, and nothing is lost", () =>
		withLog(async ({ path, write, problems }) => {
			mkdirSync(path);
			await write("1", "2");
			execFileSync("rmdir", [path]);
			await write("3");
			expect(revisionsIn(path)).toEqual(["1", "2", "3"]);
			expect(problems[0]).toMatchObject({
				sink: "file",
				kind: "retried",
				error: { code: "log_unavailable" },
			});
		}));

	it("is no symbolic link, and no pipe", () =>
		withLog(async ({ path, folder, write, problems }) => {
			symlinkSync(join(folder, "victim"), path);
			await write("1");
			expect(existsSync(join(folder, "victim"))).toBe(false);
			unlinkSync(path);
			execFileSync("mkfifo", [path]);
			await write("2");
			unlinkSync(path);
			await write("3");
			expect(revisionsIn(path)).toEqual(["1", "2", "3"]);
			expect(problems).not.toEqual([]);
		}));

	it("takes long batches as short ones", () =>
		withLog(async ({ path, write }) => {
			const revisions = Array.from({ length: 3_000 }, (_, index) => `${index}`);
			await write(...revisions);
			expect(revisionsIn(path)).toEqual(revisions);
		}));
});

it("continues within a line where the disk was full", async () => {
	await inTemporaryFolder([], async (folder) => {
		// A limit on the size of files stands for a disk that is full, until it is lifted.
		const script = `
			import { execFileSync } from "node:child_process";
			import { statSync } from "node:fs";
			import { createDecisionLog, fileSink } from "mcp-resume-guard/log";
			import { eventOf } from ${JSON.stringify(join(import.meta.dirname, "support.ts"))};
			const [path] = process.argv.slice(2);
			process.on("SIGXFSZ", () => {});
			const log = await createDecisionLog({ sinks: [fileSink(path)], onProblem() {} });
			for (let i = 0; i < 40; i++) log.record(eventOf({ revision: String(i) }));
			await log.flush(0.5);
			const full = { size: statSync(path).size, ...log.stats().sinks[0] };
			execFileSync("prlimit", ["--pid", String(process.pid), "--fsize=unlimited"]);
			await log.close();
			console.log(JSON.stringify([full, log.stats().sinks[0]]));
		`;
		const main = join(folder, "main.mts");
		writeFileSync(main, script);
		const path = join(folder, "log");
		const output = execFileSync("bash", ["-c", `ulimit -S -f 16; exec node --import tsx ${main} ${path}`], {
			encoding: "utf8",
			env: { ...process.env, TSX_TSCONFIG_PATH: join(process.cwd(), "tsconfig.json") },
		});
		const [full, end] = JSON.parse(output);
		expect(full).toMatchObject({ size: 16 * 1024, lost: 0, dropped: 0 });
		expect(full.written + full.buffered).toBe(40);
		expect(full.retried).toBeGreaterThan(0);
		expect(end).toMatchObject({ written: 40, lost: 0, dropped: 0, buffered: 0 });
		expect(revisionsIn(path)).toEqual(Array.from({ length: 40 }, (_, index) => `${index}`));
	});
});

it.each([[undefined], [""], [5]])("throws TypeError for the path %s", (path) => {
	expect(() => fileSink(path as never)).toThrow(TypeError);
});
