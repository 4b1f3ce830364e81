/** A segment of a pointer as OPA writes it in `erased` and `masked`: Go's `url.PathEscape`. */
export function escapeSegment(segment: string): string {
	return encodeURIComponent(segment.toWellFormed())
		.replace(/[!*'()]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
		.replace(/%(?:24|26|2B|3D|3A|40)/g, decodeURIComponent);
}

/** Go's `url.PathUnescape`; `undefined` for a `%` that two hex digits do not follow. */
export function unescapeSegment(segment: string): string | undefined {
	if (/%(?![0-9a-f]{2})/i.test(segment)) return undefined;
	try {
		return decodeURIComponent(segment);
	} catch {
		// Bytes that are not UTF-8: Go has strings for them, JSON has none.
		return segment;
	}
}
