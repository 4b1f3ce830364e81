# METADATA
# title: One event, just before its bytes go out
package mcp.delivery

import data.mcp.lib.answer
import data.mcp.lib.binding
import data.mcp.lib.continuity
import data.mcp.lib.need
import data.mcp.lib.token

# METADATA
# title: The decision
# entrypoint: true
decision := continuity.token_missing if continuity.token_missing

else := continuity.token_expired if continuity.token_expired

else := not_covered if not_covered

else := covered if covered

else := answer.refusal("refuse", "undecided", "keep", 403)

# METADATA
# title: audience_not_covered, scope_not_covered
# description: The token lacks what the event needs.
not_covered := object.union_n([
	answer.refusal("reauthorize", need.code(missing), "keep", 403),
	{"held": object.union(
		object.filter(input.event, {"event_id", "tool", "rpc", "request_id"}),
		{"missing": missing},
	)},
	need.answer(need.union_of([label])),
]) if {
	same_principal
	not need.met(label)
	missing := need.missing(label)
}

# METADATA
# title: covered
# description: The event may be written.
covered := answer.proceed if {
	input.moment == "delivery"
	same_principal
	need.met(label)
}

# Whose stream it is was decided when it was opened; nobody else is told what waits there.
same_principal if token.anonymous

same_principal if {
	token.valid
	continuity.in_session
	binding.identity_kept
}

same_principal if {
	token.valid
	continuity.without_session
}

label := need.of_label(input.event)
