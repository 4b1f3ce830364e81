import { createResumeGuard } from "mcp-resume-guard";
import { listTools } from "../../questions.ts";
import { reportFirst } from "./report.ts";

await reportFirst(async () => {
	const guard = await createResumeGuard({ data: "policies/mcp/data.json" });
	return guard.session(listTools("narrow"));
});
