package mcp.lib.cursor_test

import data.mcp.lib.cursor

at(position) := {"cursor": {"last_event_id": "41", "position": position}}

test_code_of_a_position[position] if {
	some position, code in {
		"foreign": "cursor_unknown",
		"unknown": "cursor_unknown",
		"evicted": "cursor_evicted",
		"ahead": "cursor_ahead",
	}
	cursor.refusal.code == code with input as at(position)
	not cursor.retained with input as at(position)
}

test_nobody_can_tell_foreign_from_unknown if {
	foreign := cursor.refusal with input as at("foreign")
	unknown := cursor.refusal with input as at("unknown")
	foreign == unknown
}

test_retained if {
	cursor.retained with input as at("retained")
	not cursor.refusal with input as at("retained")
}

test_a_position_that_there_is_not if {
	not cursor.retained with input as at("caught_up")
	not cursor.refusal with input as at("caught_up")
}

test_unmoved if cursor.unmoved == {"deliver": 0, "cursor": "41"} with input as at("evicted")
