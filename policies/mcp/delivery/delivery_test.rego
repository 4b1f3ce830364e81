package mcp.delivery_test

import data.mcp.delivery

claims := {
	"iss": "https://as.example.com",
	"sub": "alice",
	"client_id": "desktop",
	"aud": ["https://mcp.example.com"],
	"scope": [],
}

fetch_aud := ["https://mcp.example.com/tools/fetch"]

fetch := {
	"moment": "delivery",
	"now": 1796000000,
	"request": {"method": "GET", "transport": "streamable-http", "session": "known"},
	"session": {"binding": claims, "transport": "streamable-http", "opened_at": 1795990000},
	"presented": object.union(claims, {"exp": 1796003600}),
	"event": {"event_id": "48", "tool": "fetch", "request_id": 8, "aud": fetch_aud, "scope": []},
}

only_search := {"presented": {"aud": ["https://mcp.example.com/tools/search"]}}

test_covered if delivery.decision == {
	"outcome": "proceed",
	"code": "covered",
	"drift": [],
	"session": "keep",
	"status": 200,
} with input as fetch

test_audience_not_covered if delivery.decision == {
	"outcome": "reauthorize",
	"code": "audience_not_covered",
	"held": {"event_id": "48", "tool": "fetch", "request_id": 8, "missing": {"aud": fetch_aud, "scope": []}},
	"required": {"aud": fetch_aud, "scope": []},
	"drift": [],
	"session": "keep",
	"status": 403,
} with input as object.union(fetch, only_search)

test_scope_not_covered if {
	delivery.decision.code == "scope_not_covered" with input as object.union(fetch, {"event": {"scope": ["files:read"]}})
}

test_strict_has_no_other_token if {
	decision := delivery.decision with input as object.union(fetch, only_search) with data.mcp.profile as "strict"
	decision.outcome == "reinitialize"
	decision.session == "keep"
}

test_a_need_that_no_token_of_this_server_meets if {
	gone := object.union(fetch, {"event": {"tool": "gone", "aud": ["https://old.example.com"]}})
	delivery.decision.outcome == "reissue" with input as gone
}

test_the_stream_stops_when_the_token_expires if {
	delivery.decision.code == "token_expired" with input as object.union(fetch, {"now": 1796003630})
	delivery.decision.code == "covered" with input as object.union(fetch, {"now": 1796003629})
}

test_no_token if delivery.decision.code == "token_missing" with input as object.remove(fetch, ["presented"])

test_an_anonymous_session_gets_what_needs_nothing if {
	anonymous := object.union(
		object.remove(fetch, ["presented", "session", "event"]),
		{"session": {"binding": {"anonymous": true}}, "event": {"aud": [], "scope": []}},
	)
	delivery.decision.outcome == "proceed" with input as anonymous with data.mcp.anonymous as true
	needing := object.union(anonymous, {"event": {"aud": fetch_aud}})
	delivery.decision.outcome == "reinitialize" with input as needing with data.mcp.anonymous as true
}

# `proceed` is said positively: what no rule knows is refused.
test_undecided if delivery.decision == {
	"outcome": "refuse",
	"code": "undecided",
	"drift": [],
	"session": "keep",
	"status": 403,
} with input as object.union(fetch, {"moment": "resume"})

test_somebody_else_is_not_told_what_waits if {
	stranger := object.union(fetch, {"presented": {"sub": "mallory"}})
	some asked in [stranger, object.union(stranger, only_search)]
	delivery.decision == {
		"outcome": "refuse",
		"code": "undecided",
		"drift": [],
		"session": "keep",
		"status": 403,
	} with input as asked
}

test_another_client_is_somebody_else if {
	delivery.decision.code == "undecided" with input as object.union(fetch, {"presented": {"client_id": "other"}})
}

test_covered_only_where_the_need_is_met if {
	delivery.covered with input as fetch
	not delivery.covered with input as object.union(fetch, only_search)
}

without_session := object.union(
	object.remove(fetch, ["session"]),
	{"request": {"method": "POST", "session": "none"}},
)

test_covered_only_before_the_token_expires[what] if {
	some what, asked in {"in a session": fetch, "without one": without_session}
	delivery.covered with input as asked
	not delivery.covered with input as object.union(asked, {"now": 1796003630})
}

test_the_record_of_a_session_that_is_not_known_is_nobodys if {
	delivery.decision.code == "undecided" with input as object.union(fetch, {"request": {"session": "unknown"}})
}
