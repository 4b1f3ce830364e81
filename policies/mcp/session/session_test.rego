package mcp.session_test

import data.mcp.session

claims := {
	"iss": "https://as.example.com",
	"sub": "alice",
	"client_id": "desktop",
	"aud": ["https://mcp.example.com"],
	"scope": [],
}

ping := {
	"moment": "session",
	"rpc": "ping",
	"now": 1796000000,
	"request": {"method": "POST", "transport": "streamable-http", "session": "known"},
	"session": {"binding": claims, "transport": "streamable-http", "opened_at": 1795990000},
	"presented": object.union(claims, {"exp": 1796003600}),
}

test_covered if session.decision == {
	"outcome": "proceed",
	"code": "covered",
	"drift": [],
	"session": "keep",
	"status": 200,
	"label": {"aud": [], "scope": []},
} with input as ping

test_the_label_is_what_session_messages_need if {
	need := {"aud": ["https://mcp.example.com"], "scope": ["mcp"]}
	session.decision.label == need with input as ping with data.mcp.session_need as need
}

test_continuity_comes_first if {
	stranger := object.union(ping, {"presented": {"sub": "mallory"}, "request": {"id": "in_use", "quota": "exceeded"}})
	session.decision.code == "principal_drift" with input as stranger
}

test_request_id_in_use if {
	session.decision.code == "request_id_in_use" with input as object.union(ping, {"request": {"id": "in_use"}})
}

test_quota_exceeded if {
	session.decision.code == "quota_exceeded" with input as object.union(ping, {"request": {"quota": "exceeded"}})
}

# `proceed` is said positively: what no rule knows is refused.
test_undecided[what] if {
	some what, change in {
		"another moment": {"moment": "call"},
		"a state of the id that there is not": {"request": {"id": "perhaps"}},
		"a state of the quota that there is not": {"request": {"quota": "perhaps"}},
	}
	session.decision == {
		"outcome": "refuse",
		"code": "undecided",
		"drift": [],
		"session": "keep",
		"status": 403,
	} with input as object.union(ping, change)
}

# A rule of the operator's own that is no answer stands against going on all the same, and no other rule answers for it.
test_what_an_operators_rule_stands_against_is_undecided[code] if {
	some code, change in {
		"covered": {},
		"request_id_in_use": {"request": {"id": "in_use"}},
		"quota_exceeded": {"request": {"quota": "exceeded"}},
	}
	asked := object.union(ping, change)
	session.decision.code == code with input as asked
	session.decision.code == "undecided" with input as asked with data.mcp.custom.refusal as {{"reason": "closed"}}
}
