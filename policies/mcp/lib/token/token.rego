# METADATA
# title: The token of the request at hand, and requests that need none
package mcp.lib.token

# METADATA
# title: The token has not expired
# description: RFC 7519 section 4.1.4, with the one clock skew there is.
valid if input.now < input.presented.exp + data.mcp.clock_skew

# METADATA
# title: No token is needed
# description: Data allows anonymous sessions, and this is a request of one, or the one that opens it.
anonymous if {
	data.mcp.anonymous == true
	not input.presented
	anonymous_session
}

anonymous_session if {
	input.request.session == "known"
	input.session.binding.anonymous == true
}

anonymous_session if {
	input.request.session == "none"
	input.request.method == "POST"
	input.moment == "session"
	input.rpc == "initialize"
}

anonymous_session if opens_sse

# METADATA
# title: The GET that opens a session of HTTP+SSE (MCP 2024-11-05), whose id comes with its first event
opens_sse if {
	input.request.session == "none"
	input.request.method == "GET"
	input.request.transport == "sse"
	input.moment == "session"
}
