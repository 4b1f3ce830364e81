# METADATA
# title: A request that is about the session itself
# description: initialize, ping, every …/list, logging/setLevel, notifications, GET without a cursor, DELETE.
package mcp.session

import data.mcp.lib.answer
import data.mcp.lib.continuity
import data.mcp.lib.token

# METADATA
# title: The decision
# entrypoint: true
decision := continuity.refusal if not continuity.kept

else := request_id_in_use if request_id_in_use

else := quota_exceeded if quota_exceeded

else := covered if covered

else := answer.refusal("refuse", "undecided", "keep", 403)

# METADATA
# title: request_id_in_use
# description: |
#   A call with that JSON-RPC id, type and all, is still open in the session: its result would go out as the
#   answer to this request.
request_id_in_use := answer.refusal("refuse", "request_id_in_use", "keep", 400) if {
	continuity.kept
	input.request.method == "POST"
	input.request.id == "in_use"
}

# METADATA
# title: quota_exceeded
# description: The principal, or the store, has as many sessions as it may have.
quota_exceeded := answer.refusal("refuse", "quota_exceeded", "keep", 429) if {
	continuity.kept
	starts_work
	input.request.quota == "exceeded"
}

# METADATA
# title: covered
# description: Go on. What is emitted for the session itself needs `session_need`.
covered := object.union(answer.proceed, {"label": data.mcp.session_need}) if {
	input.moment == "session"
	unhindered
	continuity.kept
}

# Logging out, and listening to one's own session, need no quota.
unhindered if not starts_work

unhindered if {
	starts_work
	object.get(input.request, "id", "free") == "free"
	object.get(input.request, "quota", "left") == "left"
}

starts_work if input.request.method == "POST"

starts_work if token.opens_sse
