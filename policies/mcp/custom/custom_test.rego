# How to test a rule of one's own: put facts to a decision, and look at what it answers. The rule that these tests
# stand for is in the description of package mcp.custom; a test of a real one leaves `with data.mcp.custom.refusal` out.
package mcp.custom_test

import data.mcp.custom

claims := {
	"iss": "https://as.example.com",
	"sub": "alice",
	"client_id": "desktop",
	"aud": ["https://mcp.example.com"],
	"scope": [],
}

opened_at := 1795990000

eight_hours := (8 * 60) * 60

facts(age) := {
	"moment": "session",
	"now": opened_at + age,
	"request": {"method": "POST", "transport": "streamable-http", "session": "known"},
	"session": {"binding": claims, "transport": "streamable-http", "opened_at": opened_at},
	"presented": object.union(claims, {"exp": (opened_at + age) + 60}),
}

too_old contains {"code": "custom:session_too_old", "outcome": "reinitialize", "session": "end"} if {
	input.now - input.session.opened_at > eight_hours
}

decide(asked) := answer if {
	rules := too_old with input as asked
	answer := data.mcp[asked.moment].decision with input as asked with data.mcp.custom.refusal as rules
}

test_nothing_is_refused_as_shipped if count(custom.refusal) == 0 with input as facts(eight_hours * 2)

test_a_session_of_eight_hours_goes_on if decide(facts(eight_hours)).outcome == "proceed"

test_an_older_session_re_initializes if decide(facts(eight_hours + 1)) == {
	"outcome": "reinitialize",
	"code": "custom:session_too_old",
	"drift": [],
	"session": "end",
	"status": 403,
}

test_a_call_in_an_older_session_too if {
	asked := object.union(facts(eight_hours + 1), {"moment": "call", "tool": "search"})
	decide(asked).code == "custom:session_too_old"
}

test_a_resume_of_an_older_session_sends_nothing if {
	asked := object.union(facts(eight_hours + 1), {
		"moment": "resume",
		"request": {"method": "GET"},
		"cursor": {"last_event_id": "41", "position": "retained"},
		"pending": {"count": 0, "needs": []},
		"open": [],
	})
	decide(asked).code == "custom:session_too_old"
	decide(asked).deliver == 0
	decide(asked).cursor == "41"
}

test_a_stranger_is_a_stranger_first if {
	stranger := object.union(facts(eight_hours + 1), {"presented": {"sub": "mallory"}})
	decide(stranger).code == "principal_drift"
}

test_data_may_change_the_status if {
	answer := decide(facts(eight_hours + 1)) with data.mcp.status as {"custom:session_too_old": 404}
	answer.status == 404
}

test_events_of_an_open_stream_are_not_asked_about if {
	asked := object.union(facts(eight_hours + 1), {
		"moment": "delivery",
		"event": {"tool": "search", "aud": ["https://mcp.example.com/tools/search"], "scope": []},
	})
	decide(asked).outcome == "proceed"
}

test_what_is_added_is_refused if {
	refusal := {"code": "custom:closed", "outcome": "refuse"}
	custom.refusal == {refusal} with data.mcp.custom.nothing as {refusal}
}

# The adapter takes that for no answer.
test_a_code_of_another_rule_is_no_code if {
	borrowed := {{"code": "session_required", "outcome": "refuse"}}
	answer := data.mcp.session.decision with input as facts(1) with data.mcp.custom.refusal as borrowed
	answer.code == "not a code of a custom rule: session_required"
}
