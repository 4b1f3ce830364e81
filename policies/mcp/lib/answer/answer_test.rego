package mcp.lib.answer_test

import data.mcp.lib.answer

test_refusal if answer.refusal("refuse", "cursor_ahead", "keep", 400) == {
	"outcome": "refuse",
	"code": "cursor_ahead",
	"drift": [],
	"session": "keep",
	"status": 400,
}

test_data_changes_the_status_of_a_code if {
	answer.status("cursor_ahead", 400) == 409 with data.mcp.status as {"cursor_ahead": 409}
	answer.status("cursor_evicted", 410) == 410 with data.mcp.status as {"cursor_ahead": 409}
}

test_data_does_not_change_the_status_of_proceed if {
	answer.proceed.status == 200 with data.mcp.status as {"covered": 404}
}
