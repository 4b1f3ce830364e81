import { playStory1 } from "./story-1.ts";
import { playStory2 } from "./story-2.ts";
import { createTimeline } from "./timeline.ts";

// `npm run demo`: both stories with a real client against the example host, without the guard and with it. The exit
// code is 1 if a guarded run loses, repeats or leaks an event.
const LONGEST_MS = 120_000;

const watchdog = setTimeout(() => {
	console.error(`The demo hangs: not done after ${LONGEST_MS / 1000} s`);
	process.exit(1);
}, LONGEST_MS);

const timeline = createTimeline((line) => console.log(line), process.stdout.isTTY === true);
const faults = [...(await playStory1(timeline)), ...(await playStory2(timeline))];
clearTimeout(watchdog);

console.log();
for (const fault of faults) console.error(`FAULT  ${fault}`);
console.log(
	faults.length === 0 ? "The guarded runs lost, repeated and leaked nothing." : `${faults.length} faults`,
);
process.exitCode = faults.length === 0 ? 0 : 1;
