package mcp.call_test

import data.mcp.call

claims := {
	"iss": "https://as.example.com",
	"sub": "alice",
	"client_id": "desktop",
	"aud": ["https://mcp.example.com"],
	"scope": [],
}

base := {
	"moment": "call",
	"now": 1796000000,
	"request": {"method": "POST", "transport": "streamable-http", "session": "known"},
	"session": {"binding": claims, "transport": "streamable-http", "opened_at": 1795990000},
	"presented": object.union(claims, {"exp": 1796003600}),
}

fetch_aud := ["https://mcp.example.com/tools/fetch"]

fetch := object.union(base, {"tool": "fetch"})

only_search := {"presented": {"aud": ["https://mcp.example.com/tools/search"]}}

test_covered if call.decision == {
	"outcome": "proceed",
	"code": "covered",
	"drift": [],
	"session": "keep",
	"status": 200,
	"label": {"tool": "fetch", "aud": fetch_aud, "scope": []},
} with input as fetch

test_covered_method if {
	asked := object.union(base, {"rpc": "resources/read"})
	call.decision.label == {"rpc": "resources/read", "aud": ["https://mcp.example.com"], "scope": []} with input as asked
}

test_covered_answer_to_a_call if {
	asked := object.union(base, {"reference": {"tool": "fetch", "aud": fetch_aud, "scope": []}})
	call.decision.label == {"tool": "fetch", "aud": fetch_aud, "scope": []} with input as asked
}

test_audience_not_covered if call.decision == {
	"outcome": "reauthorize",
	"code": "audience_not_covered",
	"held": {"tool": "fetch", "missing": {"aud": fetch_aud, "scope": []}},
	"required": {"aud": fetch_aud, "scope": []},
	"drift": [],
	"session": "keep",
	"status": 403,
} with input as object.union(fetch, only_search)

test_audience_not_covered_of_an_answer if {
	asked := object.union_n([base, only_search, {"reference": {"tool": "fetch", "aud": fetch_aud, "scope": []}}])
	call.decision.held == {"tool": "fetch", "missing": {"aud": fetch_aud, "scope": []}} with input as asked
}

test_scope_not_covered if {
	needs := {"fetch": {"aud": fetch_aud, "scope": ["files:read"]}}
	decision := call.decision with input as fetch with data.mcp.tools as needs
	decision.code == "scope_not_covered"
	decision.required == {"aud": fetch_aud, "scope": ["files:read"]}
}

test_strict_has_no_other_token if {
	needs := {"fetch": {"aud": fetch_aud, "scope": ["files:read"]}}
	decision := call.decision with input as fetch with data.mcp.tools as needs with data.mcp.profile as "strict"
	decision.outcome == "reinitialize"
	decision.session == "keep"
	not decision.required
}

test_tool_unmapped if {
	call.decision.code == "tool_unmapped" with input as object.union(base, {"tool": "delete"})
	call.decision.code == "tool_unmapped" with input as object.union(base, {"rpc": "prompts/get"})
}

test_request_id_in_use if {
	call.decision.code == "request_id_in_use" with input as object.union(fetch, {"request": {"id": "in_use"}})
}

test_quota_exceeded if {
	call.decision.code == "quota_exceeded" with input as object.union(fetch, {"request": {"quota": "exceeded"}})
}

# The first rule that matches answers: each of these would refuse by itself.
test_order if {
	faults := [
		{"presented": {"sub": "mallory"}},
		{"tool": "delete"},
		{"request": {"id": "in_use"}},
		{"request": {"quota": "exceeded"}},
		only_search,
	]
	codes := [code |
		some i, _ in faults
		asked := object.union(fetch, object.union_n(array.slice(faults, i, 5)))
		code := call.decision.code with input as asked
	]
	codes == [
		"principal_drift",
		"tool_unmapped",
		"request_id_in_use",
		"quota_exceeded",
		"audience_not_covered",
	]
}

# `proceed` is said positively: what no rule knows is refused.
test_undecided[what] if {
	some what, change in {
		"another moment": {"moment": "session"},
		"a state of the id that there is not": {"request": {"id": "perhaps"}},
		"a state of the quota that there is not": {"request": {"quota": "perhaps"}},
	}
	call.decision == {
		"outcome": "refuse",
		"code": "undecided",
		"drift": [],
		"session": "keep",
		"status": 403,
	} with input as object.union(fetch, change)
}

# A rule of the operator's own that is no answer stands against going on all the same, and no other rule answers for it.
test_what_an_operators_rule_stands_against_is_undecided[code] if {
	some code, change in {
		"covered": {},
		"tool_unmapped": {"tool": "delete"},
		"request_id_in_use": {"request": {"id": "in_use"}},
		"quota_exceeded": {"request": {"quota": "exceeded"}},
		"audience_not_covered": only_search,
	}
	asked := object.union(fetch, change)
	call.decision.code == code with input as asked
	call.decision.code == "undecided" with input as asked with data.mcp.custom.refusal as {{"reason": "closed"}}
}

test_covered_only_where_the_need_is_met if {
	call.covered with input as fetch
	not call.covered with input as object.union(fetch, only_search)
}

test_an_answer_to_a_call_needs_what_that_call_needed_whatever_else_is_named if {
	reference := {"reference": {"tool": "fetch", "aud": fetch_aud, "scope": []}}
	asked := object.union_n([base, only_search, reference, {"tool": "search"}])
	call.decision.held == {"tool": "fetch", "missing": {"aud": fetch_aud, "scope": []}} with input as asked
}
