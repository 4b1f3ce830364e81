import type { EmittedEvent } from "../fastify/unguarded.ts";
import { numberOf } from "./events.ts";
import { deliveredIn, type Exchange } from "./recorder.ts";

/** What is wrong with what a client was sent of a stream, whose events it must have once each, and in order. */
export function faultsOf(events: readonly EmittedEvent[], exchanges: readonly Exchange[]): string[] {
	const expected = new Map(events.map(({ id }, index) => [id, index]));
	const places = deliveredIn(exchanges).flatMap((id) => expected.get(id) ?? []);
	const nameOf = (place: number) => numberOf(events[place]?.id ?? "");
	return [
		...events.flatMap((_, place) => (places.includes(place) ? [] : [`lost ${nameOf(place)}`])),
		...places.flatMap((place, index) => {
			if (places.indexOf(place) < index) return [`repeated ${nameOf(place)}`];
			return place < (places[index - 1] ?? 0) ? [`${nameOf(place)} out of order`] : [];
		}),
	];
}

/** Whether any byte of it came under this token: the raw responses are looked at. */
export function leaksOf(secret: string, token: string, exchanges: readonly Exchange[]): string[] {
	const isLeaked = exchanges.some((exchange) => exchange.token === token && exchange.text.includes(secret));
	return isLeaked ? [`${JSON.stringify(secret)} leaked`] : [];
}
