# A stream that was opened under https://mcp.example.com, which covers the tools, and dropped after event 41. 42 to
# 47 are of search, 48 is of fetch.
package mcp.resume_test

import data.mcp.resume

claims := {
	"iss": "https://as.example.com",
	"sub": "alice",
	"client_id": "desktop",
	"aud": ["https://mcp.example.com"],
	"scope": [],
}

search_aud := ["https://mcp.example.com/tools/search"]

fetch_aud := ["https://mcp.example.com/tools/fetch"]

dropped := {
	"moment": "resume",
	"now": 1796000000,
	"request": {"method": "GET", "transport": "streamable-http", "session": "known"},
	"session": {"binding": claims, "transport": "streamable-http", "opened_at": 1795990000},
	"presented": object.union(claims, {"exp": 1796003600}),
	"cursor": {"last_event_id": "41", "position": "retained"},
	"pending": {"count": 7, "last": "48", "needs": [
		{
			"index": 0, "event_id": "42", "before": "41",
			"tool": "search", "request_id": 7, "aud": search_aud, "scope": [],
		},
		{
			"index": 6, "event_id": "48", "before": "47",
			"tool": "fetch", "request_id": 8, "aud": fetch_aud, "scope": [],
		},
	]},
	"open": [],
}

fetch_runs := {"tool": "fetch", "request_id": 8, "aud": fetch_aud, "scope": []}

nothing_pending := {"pending": {"count": 0, "needs": []}}

caught_up := object.union(object.remove(dropped, ["pending"]), nothing_pending)

only_search := {"presented": {"aud": search_aud}}

test_the_aggregate_gets_everything if resume.decision == {
	"outcome": "proceed",
	"code": "covered",
	"deliver": 7,
	"cursor": "48",
	"drift": [],
	"session": "keep",
	"status": 200,
} with input as dropped

held_at_fetch := {
	"outcome": "reauthorize",
	"code": "audience_not_covered",
	"held": {"event_id": "48", "tool": "fetch", "request_id": 8, "missing": {"aud": fetch_aud, "scope": []}},
	"required": {"aud": array.concat(fetch_aud, search_aud), "scope": []},
	"drift": [],
	"session": "keep",
	"status": 403,
}

test_atomic_a_token_for_search_gets_nothing if {
	answer := object.union(held_at_fetch, {"deliver": 0, "cursor": "41"})
	resume.decision == answer with input as object.union(dropped, only_search) with data.mcp.replay as "atomic"
}

test_prefix_a_token_for_search_gets_what_is_before_fetch if {
	answer := object.union(held_at_fetch, {"deliver": 6, "cursor": "47"})
	resume.decision == answer with input as object.union(dropped, only_search) with data.mcp.replay as "prefix"
}

test_what_is_required_is_enough if {
	asked := object.union(dropped, {"presented": {"aud": held_at_fetch.required.aud}})
	resume.decision.outcome == "proceed" with input as asked
}

test_a_call_that_still_runs_counts_when_replay_is_atomic if {
	asked := object.union_n([caught_up, only_search, {"open": [fetch_runs]}])
	atomic := resume.decision with input as asked with data.mcp.replay as "atomic"
	atomic.outcome == "reauthorize"
	atomic.held == {"tool": "fetch", "request_id": 8, "missing": {"aud": fetch_aud, "scope": []}}
	prefix := resume.decision with input as asked with data.mcp.replay as "prefix"
	prefix.outcome == "proceed"
}

test_a_call_that_still_runs_and_is_covered if {
	asked := object.union(caught_up, {"open": [fetch_runs]})
	resume.decision.outcome == "proceed" with input as asked with data.mcp.replay as "atomic"
}

test_nothing_pending if {
	resume.decision.outcome == "proceed" with input as caught_up
	resume.decision.deliver == 0 with input as caught_up
	resume.decision.cursor == "41" with input as caught_up
}

test_a_need_that_no_token_of_this_server_meets_gives_the_stream_up[replay] if {
	some replay in ["atomic", "prefix"]
	[first, second] := dropped.pending.needs
	needs := [first, object.union(second, {"aud": ["https://old.example.com"]})]
	gone := object.union(dropped, {"pending": {"needs": needs}})
	decision := resume.decision with input as gone
		with data.mcp.replay as replay
		with data.mcp.tools as {}
	decision.outcome == "reissue"
	decision.deliver == 0
	decision.cursor == "41"
}

test_a_cursor_that_is_not_good_sends_nothing[position] if {
	some position, code in {
		"foreign": "cursor_unknown",
		"unknown": "cursor_unknown",
		"evicted": "cursor_evicted",
		"ahead": "cursor_ahead",
	}
	decision := resume.decision with input as object.union(dropped, {"cursor": {"position": position}})
	decision.code == code
	decision.deliver == 0
	decision.cursor == "41"
}

test_a_stranger_gets_nothing if {
	decision := resume.decision with input as object.union(dropped, {"presented": {"sub": "mallory"}})
	decision.code == "principal_drift"
	decision.deliver == 0
	decision.cursor == "41"
}

# `proceed` is said positively: what no rule knows is refused.
test_undecided[what] if {
	some what, change in {
		"another moment": {"moment": "delivery"},
		"a position that there is not": {"cursor": {"position": "caught_up"}},
	}
	resume.decision == {
		"outcome": "refuse",
		"code": "undecided",
		"deliver": 0,
		"cursor": "41",
		"drift": [],
		"session": "keep",
		"status": 403,
	} with input as object.union(dropped, change)
}

test_a_position_that_there_is_not_is_undecided_whatever_the_token_lacks if {
	asked := object.union_n([dropped, only_search, {"cursor": {"position": "caught_up"}}])
	resume.decision.code == "undecided" with input as asked
}

test_a_replay_that_there_is_not_is_undecided if {
	resume.decision.code == "undecided" with input as dropped with data.mcp.replay as "best effort"
}

# A rule of the operator's own that is no answer stands against going on all the same, and no other rule answers for it.
test_what_an_operators_rule_stands_against_is_undecided[code] if {
	some code, change in {
		"covered": {},
		"audience_not_covered": only_search,
		"cursor_evicted": {"cursor": {"position": "evicted"}},
	}
	asked := object.union(dropped, change)
	resume.decision.code == code with input as asked
	decision := resume.decision with input as asked with data.mcp.custom.refusal as {{"reason": "closed"}}
	decision.code == "undecided"
	decision.deliver == 0
	decision.cursor == "41"
}

test_covered_only_where_what_is_pending_is_met[replay] if {
	some replay in ["atomic", "prefix"]
	resume.covered with input as dropped with data.mcp.replay as replay
	not resume.covered with input as object.union(dropped, only_search) with data.mcp.replay as replay
}

test_atomic_covered_only_where_the_calls_that_run_are_met if {
	asked := object.union(caught_up, {"open": [fetch_runs]})
	resume.covered with input as asked with data.mcp.replay as "atomic"
	not resume.covered with input as object.union(asked, only_search) with data.mcp.replay as "atomic"
}

known_unless_of_fetch(label) := label if label.tool != "fetch"

test_a_need_that_nobody_knows_is_not_met if {
	decision := resume.decision with input as dropped
		with data.mcp.lib.need.of_label as known_unless_of_fetch
	decision.code == "undecided"
	decision.deliver == 0
}
