# METADATA
# title: A tools/call, another method that returns content, or an answer that refers to a call
package mcp.call

import data.mcp.lib.answer
import data.mcp.lib.continuity
import data.mcp.lib.need

# METADATA
# title: The decision
# entrypoint: true
decision := continuity.refusal if not continuity.kept

else := tool_unmapped if tool_unmapped

else := request_id_in_use if request_id_in_use

else := quota_exceeded if quota_exceeded

else := not_covered if not_covered

else := covered if covered

else := answer.refusal("refuse", "undecided", "keep", 403)

# METADATA
# title: tool_unmapped
# description: Data maps neither the tool or method nor "*".
tool_unmapped := answer.refusal("refuse", "tool_unmapped", "keep", 403) if {
	continuity.kept
	not label
}

# METADATA
# title: request_id_in_use
# description: A call with that JSON-RPC id, type and all, is still open in the session.
request_id_in_use := answer.refusal("refuse", "request_id_in_use", "keep", 400) if {
	continuity.kept
	input.request.id == "in_use"
}

# METADATA
# title: quota_exceeded
# description: The principal has as many calls or buffered events as it may have.
quota_exceeded := answer.refusal("refuse", "quota_exceeded", "keep", 429) if {
	continuity.kept
	input.request.quota == "exceeded"
}

# METADATA
# title: audience_not_covered, scope_not_covered
# description: The token lacks what the call needs.
not_covered := object.union_n([
	answer.refusal("reauthorize", need.code(missing), "keep", 403),
	{"held": object.union(subject, {"missing": missing})},
	need.answer(need.union_of([label])),
]) if {
	continuity.kept
	not need.met(label)
	missing := need.missing(label)
}

# METADATA
# title: covered
# description: Go on, and store the label with what the call emits.
covered := object.union(answer.proceed, {"label": object.union(subject, label)}) if {
	input.moment == "call"
	continuity.kept
	object.get(input.request, "id", "free") == "free"
	object.get(input.request, "quota", "left") == "left"
	need.met(label)
}

# What the call needs.
label := need.of_label(input.reference) if input.reference

else := need.of_label(object.union({"tool": input.tool}, need.of_tool(input.tool))) if input.tool

else := need.of_label(object.union({"rpc": input.rpc}, need.of_method(input.rpc)))

# What the call is.
subject := object.filter(input.reference, {"tool", "rpc"}) if input.reference

else := object.filter(input, {"tool", "rpc"})
