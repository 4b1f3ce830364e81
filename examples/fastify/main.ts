import { parseArgs } from "node:util";
import { startExample } from "./host.ts";

// `npm run example -- [--no-guard] [--sdk-transport] [--profile P] [--replay R] [--foreign-principal F] [--data FILE]`, on PORT (0 or
// unset: any). With --data the policy data is in FILE, which is made if it is not there: an edit takes effect at once.
const { values } = parseArgs({
	options: {
		guard: { type: "boolean", default: true },
		"sdk-transport": { type: "boolean", default: false },
		profile: { type: "string" },
		replay: { type: "string" },
		"foreign-principal": { type: "string" },
		data: { type: "string" },
	},
	allowNegative: true,
});

const example = await startExample({
	port: Number(process.env.PORT ?? 0),
	guarded: values.guard,
	sdkTransport: values["sdk-transport"],
	// What the guard refuses, a line each; standard output has the line below only.
	logger: { level: "info", stream: process.stderr },
	logRequests: false,
	...(values.data !== undefined && { dataFile: values.data }),
	data: Object.fromEntries(
		Object.entries({
			profile: values.profile,
			replay: values.replay,
			foreign_principal: values["foreign-principal"],
		}).filter(([, value]) => value !== undefined),
	),
});
const { mcp, origin, authorizationServer } = example;
console.log(
	JSON.stringify({
		mcp,
		token: `${origin}/dev/token`,
		drop: `${origin}/dev/drop`,
		open: `${origin}/dev/open`,
		metadata: `${origin}/.well-known/oauth-protected-resource/mcp`,
		issuer: authorizationServer.issuer,
	}),
);

for (const signal of ["SIGINT", "SIGTERM"] as const) {
	process.once(signal, () => void example.close());
}
