import { ResumeGuardError } from "../errors.ts";

/** Something is wrong with the log; decisions are made all the same. */
export interface DecisionLogProblem {
	/** The sink's name; absent: the log itself. */
	readonly sink?: string;
	/**
	 * `dropped`: records that did not fit into a buffer, or were left at the end. `lost`: records that a sink did not
	 * take. `retried`: writes that failed and are tried again. `masked`: records without facts, since masking failed.
	 */
	readonly kind: "dropped" | "lost" | "retried" | "masked";
	/** How many since the last report of this kind. */
	readonly count: number;
	/** The latest. It may be of a sink of yours: look before you print it. */
	readonly error?: unknown;
}

export type Report = (
	kind: DecisionLogProblem["kind"],
	sink?: string,
	count?: number,
	error?: unknown,
) => void;

/** Tells of each kind of problem once, and then at most once in each period, with how many there were. */
export function createReport(
	period: number,
	onProblem: (problem: DecisionLogProblem) => void,
): { report: Report; close(): void } {
	const kinds = new Map<string, { count: number; error: unknown; timer: NodeJS.Timeout | undefined }>();
	const closers = new Set<() => void>();

	const report: Report = (kind, sink, count = 1, error) => {
		const key = `${kind} ${sink ?? ""}`;
		let of = kinds.get(key);
		if (of === undefined) {
			of = { count: 0, error: undefined, timer: undefined };
			kinds.set(key, of);
			closers.add(() => tell());
		}
		const known = of;
		const tell = () => {
			clearTimeout(known.timer);
			known.timer = undefined;
			if (known.count === 0) return;
			const problem = {
				kind,
				count: known.count,
				...(sink !== undefined && { sink }),
				...(known.error !== undefined && { error: known.error }),
			};
			known.count = 0;
			known.error = undefined;
			known.timer = setTimeout(tell, period).unref();
			try {
				onProblem(problem);
			} catch {
				// Whoever cannot hear of problems must not become one.
			}
		};
		known.count += count;
		known.error = error ?? known.error;
		if (known.timer === undefined) tell();
	};

	return {
		report,
		close() {
			for (const tell of closers) tell();
			for (const { timer } of kinds.values()) clearTimeout(timer);
		},
	};
}

/** To the console, and without what an error of someone else's may quote. */
export function printProblem({ kind, sink, count, error }: DecisionLogProblem): void {
	const of = sink === undefined ? "" : ` to ${sink}`;
	console.error(`mcp-resume-guard: decision log${of}: ${count} ${kind}${reasonOf(error)}`);
}

function reasonOf(error: unknown): string {
	if (error instanceof ResumeGuardError) return `: ${error.message}`;
	if (!(error instanceof Error)) return "";
	const { code } = error as { code?: unknown };
	return typeof code === "string" && /^[A-Z_]+$/.test(code) ? `: ${code}` : `: ${error.name}`;
}
