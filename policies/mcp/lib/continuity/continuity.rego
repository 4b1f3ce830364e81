# METADATA
# title: Session continuity, asked at every request
# description: |
#   A valid token and a known session id are not enough: the presented claims are compared with the
#   binding that the session was opened with. The first rule that matches, in the order of `refusal`, answers.
package mcp.lib.continuity

import data.mcp.custom
import data.mcp.lib.answer
import data.mcp.lib.binding
import data.mcp.lib.token

# METADATA
# title: The first refusal, if there is one
refusal := token_missing if token_missing

else := token_expired if token_expired

else := session_unknown if session_unknown

else := session_required if session_required

else := principal_drift if principal_drift

else := binding_drift if binding_drift

else := custom_refusal

# METADATA
# title: Nothing stands against going on with this session, or without one
kept if {
	not_drifted
	count(custom.refusal) == 0
}

# The usual case first, and `else`: Wasm would try every one of several rules.
not_drifted if {
	token.valid
	in_session
	binding.identity_kept
	binding.profile_kept
} else if {
	token.anonymous
} else if {
	token.valid
	without_session
}

# METADATA
# title: The request names a session that is known
in_session if input.request.session == "known"

# METADATA
# title: No session is given, and none is needed
# description: An initialize, a host without sessions, or the GET that opens a session of HTTP+SSE (MCP 2024-11-05).
without_session if {
	input.request.session == "none"
	input.request.method == "POST"
	input.moment != "resume"
}

without_session if token.opens_sse

# METADATA
# title: token_missing
# description: There is no token, and this is no anonymous session.
token_missing := answer.refusal("reauthenticate", "token_missing", "keep", 401) if {
	not input.presented
	not token.anonymous
}

# METADATA
# title: token_expired
# description: There is a token, but it is not valid now.
token_expired := answer.refusal("reauthenticate", "token_expired", "keep", 401) if {
	input.presented
	not token.valid
}

# METADATA
# title: session_unknown
# description: The session id was never opened, or its session has ended.
session_unknown := answer.refusal("reinitialize", "session_unknown", "keep", 404) if {
	input.request.session == "unknown"
}

# METADATA
# title: session_required
# description: No session id, where one is needed.
session_required := answer.refusal("refuse", "session_required", "keep", 400) if {
	input.request.session == "none"
	not without_session
}

# METADATA
# title: principal_drift
# description: Somebody else, or the same user through another client, issuer or key. Also a token in an anonymous session.
principal_drift := refusal_of_stranger if {
	in_session
	not token.anonymous
	not binding.identity_kept
}

refusal_of_stranger := object.union(
	answer.refusal("reinitialize", "principal_drift", "end", 403),
	{"drift": binding.identity_drift},
) if {
	data.mcp.foreign_principal == "end"
}

# The status is the one of an unknown session, so that nobody can tell the two apart.
refusal_of_stranger := object.union(
	answer.refusal("reinitialize", "principal_drift", "keep", 403),
	{"drift": binding.identity_drift, "status": answer.status("session_unknown", 404)},
) if {
	data.mcp.foreign_principal == "keep"
}

# METADATA
# title: binding_drift
# description: The same principal, but aud or scope have changed in a way that the profile does not allow.
binding_drift := object.union(
	answer.refusal("reinitialize", "binding_drift", "end", 403),
	{"drift": binding.profile_drift},
) if {
	in_session
	not token.anonymous
	not binding.profile_kept
}

# METADATA
# title: custom:…
# description: A rule of the operator's own refuses (policies/mcp/custom); the first by its code, if there are several.
custom_refusal := answer.refusal(
	first.outcome,
	own_code(first.code),
	object.get(first, "session", "keep"),
	object.get(first, "status", 403),
) if {
	first := sort([[refused.code, refused] | some refused in custom.refusal])[0][1]
}

# A code of another rule would be taken for that rule's answer; what is no code at all is a fault.
own_code(code) := code if startswith(code, "custom:")

else := concat(" ", ["not a code of a custom rule:", code])
