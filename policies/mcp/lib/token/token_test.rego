package mcp.lib.token_test

import data.mcp.lib.token

test_valid_before_exp if token.valid with input as {"now": 100, "presented": {"exp": 101}}
	with data.mcp.clock_skew as 0

test_not_valid_at_exp if not token.valid with input as {"now": 101, "presented": {"exp": 101}}
	with data.mcp.clock_skew as 0

test_valid_within_the_skew if token.valid with input as {"now": 130, "presented": {"exp": 101}}
	with data.mcp.clock_skew as 30

test_not_valid_at_the_end_of_the_skew if not token.valid with input as {"now": 131, "presented": {"exp": 101}}
	with data.mcp.clock_skew as 30

test_not_valid_without_a_token if not token.valid with input as {"now": 100}

anonymous_ping := {
	"moment": "session",
	"rpc": "ping",
	"request": {"method": "POST", "session": "known"},
	"session": {"binding": {"anonymous": true}},
}

initialize := {"moment": "session", "rpc": "initialize", "request": {"method": "POST", "session": "none"}}

open_sse := {"moment": "session", "request": {"method": "GET", "transport": "sse", "session": "none"}}

test_anonymous_session if token.anonymous with input as anonymous_ping with data.mcp.anonymous as true

test_anonymous_initialize if token.anonymous with input as initialize with data.mcp.anonymous as true

test_anonymous_get_of_http_sse if token.anonymous with input as open_sse with data.mcp.anonymous as true

test_anonymous_only_where_data_allows_it[what] if {
	some what, facts in {"session": anonymous_ping, "initialize": initialize, "GET of HTTP+SSE": open_sse}
	not token.anonymous with input as facts with data.mcp.anonymous as false
}

test_not_anonymous[what] if {
	some what, change in {
		"with a token": {"presented": {"sub": "alice"}},
		"somebody's session": {"session": {"binding": {"anonymous": false, "sub": "alice"}}},
		"an unknown session": {"request": {"session": "unknown"}},
		"a method that opens none": {"request": {"session": "none"}, "rpc": "tools/list"},
		"a call": {"request": {"session": "none"}, "rpc": "initialize", "moment": "call"},
		"a GET": {"request": {"session": "none", "method": "GET"}, "rpc": "initialize"},
	}
	not token.anonymous with input as object.union(anonymous_ping, change) with data.mcp.anonymous as true
}
