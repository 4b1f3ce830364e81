import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";
import { z } from "zod";
import type { AuthorizationServer } from "./authorization-server.ts";
import type { Gates } from "./gates.ts";

const tokenRequest = z.object({
	sub: z.string(),
	client_id: z.string(),
	aud: z.union([z.string(), z.array(z.string())]),
	scope: z.union([z.string(), z.array(z.string())]).optional(),
	exp: z.number().optional(),
});
const dropRequest = z.object({ session: z.string() });
const openRequest = z.object({ session: z.string(), gate: z.string() });

/**
 * EXAMPLE ONLY, never in a host of yours: doors through which anyone on this machine has any token, and cuts any
 * session's connections. The example listens on loopback only.
 *
 * - `POST /dev/token` `{sub, client_id, aud, scope?, exp?}` → `{access_token}`; `exp` is a NumericDate
 * - `POST /dev/drop` `{session}` → `{dropped}`: cuts that session's open streams at once, without a clean end
 * - `POST /dev/open` `{session, gate}`: lets a tool go on that was called to wait at a gate of that name
 */
export function addDevDoors(
	app: FastifyInstance,
	authorizationServer: AuthorizationServer,
	gates: Gates,
): void {
	const open = new Map<string, Set<Socket>>();

	app.addHook("onRequest", async (request, reply) => {
		const session = request.headers["mcp-session-id"];
		if (typeof session !== "string") return;
		const sockets = open.get(session) ?? new Set();
		open.set(session, sockets.add(request.raw.socket));
		reply.raw.once("close", () => {
			sockets.delete(request.raw.socket);
			if (sockets.size === 0) open.delete(session);
		});
	});

	app.post("/dev/token", async (request) => {
		const { scope, exp, ...claims } = tokenRequest.parse(request.body);
		const access_token = await authorizationServer.mint({
			...claims,
			...(scope !== undefined && { scope }),
			...(exp !== undefined && { exp }),
		});
		return { access_token };
	});

	app.post("/dev/drop", async (request) => {
		const { session } = dropRequest.parse(request.body);
		const sockets = [...(open.get(session) ?? [])];
		for (const socket of sockets) socket.destroy();
		return { dropped: sockets.length };
	});

	app.post("/dev/open", async (request, reply) => {
		const { session, gate } = openRequest.parse(request.body);
		gates.open(session, gate);
		return reply.code(204).send();
	});

	app.setErrorHandler((error, _request, reply) =>
		error instanceof z.ZodError
			? reply.code(400).send({ message: z.prettifyError(error) })
			: reply.send(error),
	);
}
