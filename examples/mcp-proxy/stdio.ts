import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { createGates } from "../fastify/gates.ts";
import { createTools } from "../fastify/tools.ts";

/** A server on stdio, for the proxy to hand on. */
await createTools(createGates()).connect(new StdioServerTransport());
