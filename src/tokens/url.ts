/**
 * A URL as `htu` is compared by (RFC 9449 section 4.3): without query and fragment; scheme and host in lower case,
 * without the default port and dot segments, as URLs are parsed; percent-encoding in its one normal form (RFC 3986
 * section 6.2.2).
 */
export function normalised(value: string | URL): string {
	const url = new URL(value);
	url.search = "";
	url.hash = "";
	url.pathname = url.pathname.replace(/%[0-9a-f]{2}/gi, (octet) => {
		const character = String.fromCharCode(Number.parseInt(octet.slice(1), 16));
		return /[A-Za-z0-9._~-]/.test(character) ? character : octet.toUpperCase();
	});
	return url.href;
}

/**
 * What comes before the path of a request in the URL that clients use. Not from the request: its `Host` is whatever the
 * client says, also one that a proof for another server was made for.
 *
 * @returns `undefined` if it is not given and no resource is an http(s) URL
 * @throws TypeError for what is no such URL
 */
export function publicBase(given: string | URL | undefined, resources: readonly string[]): URL | undefined {
	if (given === undefined) {
		const resource = resources.find(
			(indicator) => /^https?:\/\//i.test(indicator) && URL.canParse(indicator),
		);
		return resource === undefined ? undefined : new URL("/", resource);
	}
	const url = new URL(given);
	if (!/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) {
		throw new TypeError("dpop.baseUrl is an http(s) URL without credentials, query and fragment");
	}
	return url;
}

/** The URL that a client used, from that of the request as the host has it: absolute, or from the path on. */
export function publicUrl(base: URL, requested: string): string {
	const path = requested.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*|[?#].*$/gis, "");
	const url = new URL(base);
	url.pathname = base.pathname.replace(/\/$/, "") + path;
	return normalised(url);
}
