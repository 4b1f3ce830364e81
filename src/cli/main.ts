#!/usr/bin/env node
import { run } from "./program.ts";

// Not process.exit(): what has been written still has to get out.
run(process.argv.slice(2), process).then((exitCode) => {
	process.exitCode = exitCode;
});
