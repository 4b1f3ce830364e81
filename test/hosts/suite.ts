import { describe } from "vitest";
import { deliveryTests } from "./suite/delivery.ts";
import { httpTests } from "./suite/http.ts";
import { resumeTests } from "./suite/resume.ts";
import { sessionTests } from "./suite/session.ts";
import { storeTests } from "./suite/stores.ts";
import { streamTests } from "./suite/stream.ts";
import type { StartHost } from "./support/host.ts";

/** What every host under guard does, byte for byte. */
export function hostSuite(host: string, start: StartHost): void {
	describe(`${host}: requests`, () => httpTests(start));
	describe(`${host}: sessions`, () => sessionTests(start));
	describe(`${host}: resumes`, () => resumeTests(start));
	describe(`${host}: what a token covers`, () => deliveryTests(start));
	describe(`${host}: streams`, () => streamTests(start));
	describe(`${host}: stores that fail`, () => storeTests(start));
}
