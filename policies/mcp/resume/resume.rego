# METADATA
# title: A GET with Last-Event-ID
# description: |
#   A resumed stream is replayed under the token of the reconnect. Its aud, through coverage, must be a superset of
#   what every pending event needs; otherwise the answer is an error that can be retried, never a skipped event and
#   never a clean end, and the cursor never moves past an event that was not delivered.
package mcp.resume

import data.mcp.lib.answer
import data.mcp.lib.continuity
import data.mcp.lib.cursor
import data.mcp.lib.need

# METADATA
# title: The decision
# entrypoint: true
decision := object.union(continuity.refusal, cursor.unmoved) if not continuity.kept

else := object.union(cursor.refusal, cursor.unmoved) if continuity.kept

else := not_covered if not_covered

else := covered if covered

else := object.union(answer.refusal("refuse", "undecided", "keep", 403), cursor.unmoved)

# METADATA
# title: audience_not_covered, scope_not_covered
# description: A need is not met, of a pending event or, when replay is atomic, of a call that is still running.
not_covered := object.union(need.answer(all_needs), {
	"code": code,
	"held": held,
	"deliver": reach.deliver,
	"cursor": reach.cursor,
	"drift": [],
	"session": "keep",
	"status": answer.status(code, 403),
}) if {
	continuity.kept
	cursor.retained
	code := need.code(held.missing)
}

# METADATA
# title: covered
# description: Everything that is pending, in order, and then what is still to come.
covered := {
	"outcome": "proceed",
	"code": "covered",
	"deliver": input.pending.count,
	"cursor": object.get(input.pending, "last", input.cursor.last_event_id),
	"drift": [],
	"session": "keep",
	"status": 200,
} if {
	input.moment == "resume"
	continuity.kept
	cursor.retained
	all_met(pending_met, input.pending.needs)
	running_met
}

all_met(met, needs) if {
	count(met) == count(needs)
	not false in met
}

# A call still running counts when replay is atomic: its result could not be delivered either.
running_met if data.mcp.replay == "prefix"

running_met if {
	data.mcp.replay == "atomic"
	all_met(open_met, input.open)
}

pending_needs := [need.of_label(pending) | some pending in input.pending.needs]

pending_met := [need.is_met(needed) | some needed in pending_needs]

open_needs := [need.of_label(running) | some running in input.open]

open_met := [need.is_met(needed) | some needed in open_needs]

# The first need that is not met.
held := held_of(input.pending.needs[first_unmet], pending_needs[first_unmet]) if {
	first_unmet
} else := held_of(input.open[first], open_needs[first]) if {
	data.mcp.replay == "atomic"
	first := [i | some i, met in open_met; met == false][0]
}

first_unmet := [i | some i, met in pending_met; met == false][0]

held_of(candidate, needed) := object.union(
	object.filter(candidate, {"event_id", "tool", "rpc", "request_id"}),
	{"missing": need.missing(needed)},
)

# All needs that a token has to meet for the resume to proceed.
all_needs := need.union_of(pending_needs) if data.mcp.replay == "prefix"

all_needs := need.union_of(array.concat(pending_needs, open_needs)) if data.mcp.replay == "atomic"

# How far the stream gets: nowhere, or with `prefix` to just before the held event.
reach := {"deliver": at.index, "cursor": at.before} if {
	data.mcp.replay == "prefix"
	need.answer(all_needs).outcome == "reauthorize"
	at := input.pending.needs[first_unmet]
} else := cursor.unmoved
