import type { AuthInfo } from "./sdk.ts";

/** What a message's request is for the handlers of the SDKs' servers: `requestInfo` is for v1, `request` for v2. */
export interface RequestExtra {
	readonly authInfo: AuthInfo | undefined;
	readonly requestInfo: {
		readonly headers: Readonly<Record<string, string | string[] | undefined>>;
		readonly url: URL;
	};
	readonly request: Request;
}

/** Of a request of node:http. */
export function messageExtra(
	authInfo: AuthInfo | undefined,
	method: string,
	url: string,
	headers: RequestExtra["requestInfo"]["headers"],
): RequestExtra {
	return {
		authInfo,
		requestInfo: {
			headers,
			get url() {
				return new URL(url);
			},
		},
		request: lazily(() => new Request(url, { method, headers: webHeaders(headers) })),
	};
}

function webHeaders(headers: RequestExtra["requestInfo"]["headers"]): Headers {
	const all = new Headers();
	for (const [name, value] of Object.entries(headers)) {
		for (const one of [value].flat()) if (one !== undefined) all.append(name, one);
	}
	return all;
}

/** A Request that is made when something looks at it: the SDKs hand it on with each message, and few tools look. */
function lazily(make: () => Request): Request {
	let made: Request | undefined;
	return new Proxy(Object.create(Request.prototype) as Request, {
		get(_, name) {
			made ??= make();
			const value: unknown = Reflect.get(made, name);
			return typeof value === "function" ? value.bind(made) : value;
		},
	});
}
