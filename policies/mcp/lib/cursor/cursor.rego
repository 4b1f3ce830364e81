# METADATA
# title: Where the client's Last-Event-ID stands in the event log
package mcp.lib.cursor

import data.mcp.lib.answer

# METADATA
# title: The cursor's refusal, if there is one
refusal := cursor_unknown if cursor_unknown

else := cursor_evicted if cursor_evicted

else := cursor_ahead

# METADATA
# title: Every event after the cursor is there
retained if input.cursor.position == "retained"

# METADATA
# title: The answer leaves the client's cursor where it is, and sends nothing
unmoved := {"deliver": 0, "cursor": input.cursor.last_event_id}

# METADATA
# title: cursor_unknown
# description: No such id in this session, or an id of another session's stream. The log tells the two apart, the answer does not.
cursor_unknown := answer.refusal("reissue", "cursor_unknown", "keep", 400) if {
	input.cursor.position in {"foreign", "unknown"}
}

# METADATA
# title: cursor_evicted
# description: An event after the cursor is gone, or the id is of an earlier epoch.
cursor_evicted := answer.refusal("reissue", "cursor_evicted", "keep", 410) if {
	input.cursor.position == "evicted"
}

# METADATA
# title: cursor_ahead
# description: The id was never issued, or never written to a stream. Nobody can claim what was not sent.
cursor_ahead := answer.refusal("refuse", "cursor_ahead", "keep", 400) if {
	input.cursor.position == "ahead"
}
