import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { NodeStreamableHTTPServerTransport } from "@modelcontextprotocol/node";
import type { McpServer as McpServerV1 } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import type {
	EventStore as EventStoreV1,
	WebStandardStreamableHTTPServerTransport as WebTransportV1,
	WebStandardStreamableHTTPServerTransportOptions as WebTransportV1Options,
} from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import type {
	EventStore as EventStoreV2,
	McpServer as McpServerV2,
	WebStandardStreamableHTTPServerTransport as WebTransportV2,
	WebStandardStreamableHTTPServerTransportOptions as WebTransportV2Options,
} from "@modelcontextprotocol/server";
import { describe, expect, expectTypeOf, test } from "vitest";
import type { GuardedSession } from "../../src/hosts/endpoint.ts";
import type { Connect, GuardTransport } from "../../src/hosts/own-transport.ts";
import type { NodeTransport, SdkEventStore, SdkTransport, WebTransport } from "../../src/hosts/sdk.ts";

const SDKS = /["'](@modelcontextprotocol\/[^"']*)["']/g;

describe("the MCP SDKs", () => {
	test("are known by their shape only: nothing in src imports one", () => {
		const files = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((file) =>
			/\.[cm]?[jt]s$/.test(file),
		);
		const imports = files.flatMap((file) => {
			const text = readFileSync(join("src", file), "utf8");
			return [...text.matchAll(SDKS)].map(([, specifier]) => `${file}: ${specifier}`);
		});
		expect(files.length).toBeGreaterThan(50);
		expect(imports).toEqual([]);
	});

	test("are no dependencies of the package", () => {
		const { dependencies } = JSON.parse(readFileSync("package.json", "utf8")) as { dependencies: object };
		expect(Object.keys(dependencies).filter((name) => name.startsWith("@modelcontextprotocol/"))).toEqual([]);
	});

	// Checked by the compiler.
	test("have transports for node:http that fit, of v1 and v2", () => {
		expectTypeOf<StreamableHTTPServerTransport>().toExtend<NodeTransport>();
		expectTypeOf<NodeStreamableHTTPServerTransport>().toExtend<NodeTransport>();
		expectTypeOf<NodeTransport>().not.toBeAny();
	});

	test("have transports for fetch that fit, of v1 and v2", () => {
		expectTypeOf<WebTransportV1>().toExtend<WebTransport>();
		expectTypeOf<WebTransportV2>().toExtend<WebTransport>();
		expectTypeOf<WebTransport>().not.toBeAny();
	});

	test("take the event store and the options of a session, of v1 and v2", () => {
		expectTypeOf<SdkEventStore>().toExtend<EventStoreV1>();
		expectTypeOf<SdkEventStore>().toExtend<EventStoreV2>();
		type Options = GuardedSession["transportOptions"];
		expectTypeOf<Options>().toExtend<WebTransportV1Options>();
		expectTypeOf<Options>().toExtend<WebTransportV2Options>();
		expectTypeOf<[Options]>().toExtend<ConstructorParameters<typeof StreamableHTTPServerTransport>>();
		expectTypeOf<[Options]>().toExtend<ConstructorParameters<typeof NodeStreamableHTTPServerTransport>>();
	});

	test("have servers that the guard's own transport fits, of v1 and v2", () => {
		expectTypeOf<[GuardTransport]>().toExtend<Parameters<McpServerV1["connect"]>>();
		expectTypeOf<[GuardTransport]>().toExtend<Parameters<McpServerV2["connect"]>>();
		expectTypeOf<McpServerV1["connect"]>().toExtend<Connect>();
		expectTypeOf<McpServerV2["connect"]>().toExtend<Connect>();
		expectTypeOf<GuardTransport>().not.toBeAny();
	});

	test("keep their own type when they are attached", () => {
		type Attach = GuardedSession<NodeTransport>["attach"];
		expectTypeOf<Attach>().toBeCallableWith({} as StreamableHTTPServerTransport);
		expectTypeOf<Attach>().toBeCallableWith({} as NodeStreamableHTTPServerTransport);
		const attach: Attach = (transport) => transport;
		expectTypeOf(
			attach<StreamableHTTPServerTransport>,
		).returns.toEqualTypeOf<StreamableHTTPServerTransport>();
		expectTypeOf<{ send(): void }>().not.toExtend<SdkTransport>();
	});
});
