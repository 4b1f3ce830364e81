/** Why a body could not be read: an HTTP status and a sentence. */
export interface UnreadableBody {
	readonly status: 400 | 413 | 415;
	readonly message: string;
}

/** As the MCP SDKs have it. */
const MAX_BYTES = 4 * 1024 * 1024;

/** Says what is wrong with a media type that is not JSON's. */
export function whyNoJson(contentType: string | undefined): UnreadableBody | undefined {
	const mediaType = contentType?.split(";")[0]?.trim().toLowerCase();
	return mediaType === "application/json"
		? undefined
		: { status: 415, message: "Content-Type must be application/json" };
}

/** Reads a JSON body, of a limited size. */
export async function readJson(
	contentType: string | undefined,
	chunks: AsyncIterable<Uint8Array>,
): Promise<{ body: unknown } | { unreadable: UnreadableBody }> {
	const unreadable = whyNoJson(contentType);
	if (unreadable !== undefined) return { unreadable };
	const decoder = new TextDecoder("utf-8", { fatal: true });
	let text = "";
	let bytes = 0;
	try {
		for await (const chunk of chunks) {
			bytes += chunk.byteLength;
			if (bytes > MAX_BYTES) {
				return { unreadable: { status: 413, message: `The body must not exceed ${MAX_BYTES} bytes` } };
			}
			text += decoder.decode(chunk, { stream: true });
		}
		return { body: JSON.parse(text + decoder.decode()) };
	} catch {
		return { unreadable: { status: 400, message: "Parse error: Invalid JSON" } };
	}
}
