package mcp.lib.continuity_test

import data.mcp.lib.continuity

alice := {
	"iss": "https://as.example",
	"sub": "alice",
	"client_id": "desktop",
	"aud": ["https://rs.example"],
	"scope": [],
}

good := {
	"moment": "session",
	"now": 100,
	"request": {"method": "POST", "session": "known"},
	"session": {"binding": alice},
	"presented": object.union(alice, {"exp": 200}),
}

unknown := object.union(json.remove(good, ["/session"]), {"request": {"session": "unknown"}})

none := object.union(json.remove(good, ["/session"]), {"request": {"session": "none"}})

expired := object.union(good, {"presented": {"exp": 1}})

stranger := object.union(good, {"presented": {"sub": "mallory"}})

sideways := object.union(good, {"presented": {"aud": ["https://other.example"]}})

refusal(facts) := answer if {
	answer := continuity.refusal with input as facts with data.mcp.resources as ["https://rs.example"]
}

kept(facts) if {
	continuity.kept with input as facts with data.mcp.resources as ["https://rs.example"]
}

test_kept if {
	kept(good)
	not refusal(good)
}

test_refusal[code] if {
	some code, facts in {
		"token_missing": json.remove(good, ["/presented"]),
		"token_expired": expired,
		"session_unknown": unknown,
		"session_required": object.union(none, {"request": {"method": "GET"}}),
		"principal_drift": stranger,
		"binding_drift": sideways,
	}
	refusal(facts).code == code
	not kept(facts)
}

test_only_drift_ends_a_session if {
	refusal(stranger).session == "end"
	refusal(sideways).session == "end"
	refusal(expired).session == "keep"
}

test_drift_names_the_claims if {
	refusal(stranger).drift == ["sub"]
	refusal(sideways).drift == ["aud"]
}

test_a_post_needs_no_session if {
	kept(none)
	kept(object.union(none, {"moment": "call"}))
}

test_the_get_that_opens_http_sse_needs_no_session if {
	kept(object.union(none, {"request": {"method": "GET", "transport": "sse"}}))
}

test_a_get_a_delete_and_a_resume_need_a_session[what] if {
	some what, facts in {
		"GET": {"request": {"method": "GET"}},
		"DELETE": {"request": {"method": "DELETE"}},
		"DELETE of HTTP+SSE": {"request": {"method": "DELETE", "transport": "sse"}},
		"resume": {"moment": "resume"},
	}
	refusal(object.union(none, facts)).code == "session_required"
	not kept(object.union(none, facts))
}

test_a_stranger_gets_the_status_of_an_unknown_session_where_the_session_is_kept if {
	hidden := refusal(stranger) with data.mcp.foreign_principal as "keep"
	hidden.code == "principal_drift"
	hidden.session == "keep"
	hidden.status == refusal(unknown).status

	# Also where data gives an unknown session another status.
	moved := refusal(stranger) with data.mcp.foreign_principal as "keep"
		with data.mcp.status as {"session_unknown": 410, "principal_drift": 401}
	moved.status == 410
}

test_anonymous_sessions if {
	nobody := json.remove(good, ["/presented", "/session/binding"])
	facts := object.union(nobody, {"session": {"binding": {"anonymous": true}}})
	kept(facts) with data.mcp.anonymous as true
	not kept(facts) with data.mcp.anonymous as false
	refusal(facts).code == "token_missing" with data.mcp.anonymous as false
}

own_rule := {"code": "custom:closed", "outcome": "refuse"}

test_an_operators_rule_refuses if {
	refused := refusal(good) with data.mcp.custom.refusal as {own_rule}
	refused == {"outcome": "refuse", "code": "custom:closed", "drift": [], "session": "keep", "status": 403}
	not kept(good) with data.mcp.custom.refusal as {own_rule}
}

test_an_operators_rule_comes_after_the_others if {
	refusal(unknown).code == "session_unknown" with data.mcp.custom.refusal as {own_rule}
	refusal(stranger).code == "principal_drift" with data.mcp.custom.refusal as {own_rule}
}

test_of_an_operators_rules_the_first_by_code_answers if {
	rules := {own_rule, {"code": "custom:brunch", "outcome": "reinitialize", "session": "end", "status": 503}}
	refused := refusal(good) with data.mcp.custom.refusal as rules
	refused == {"outcome": "reinitialize", "code": "custom:brunch", "drift": [], "session": "end", "status": 503}
}

test_an_operators_rule_that_says_nothing_sensible_refuses_all_the_same if {
	not kept(good) with data.mcp.custom.refusal as {{"reason": "closed"}}
	not refusal(good) with data.mcp.custom.refusal as {{"reason": "closed"}}
}

test_an_operators_rule_answers_where_the_session_is_not_compared[what] if {
	anonymous := object.union(
		json.remove(good, ["/presented", "/session/binding"]),
		{"session": {"binding": {"anonymous": true}}},
	)
	some what, facts in {"no session": none, "an anonymous session": anonymous}
	kept(facts) with data.mcp.anonymous as true
	refused := refusal(facts) with data.mcp.anonymous as true with data.mcp.custom.refusal as {own_rule}
	refused.code == "custom:closed"
}

test_the_first_by_code_whatever_else_a_rule_says if {
	rules := {own_rule, {"because": "of lunch", "code": "custom:lunch", "outcome": "refuse"}}
	refusal(good).code == "custom:closed" with data.mcp.custom.refusal as rules
}

test_a_code_without_the_colon_is_no_code if {
	refused := refusal(good) with data.mcp.custom.refusal as {{"code": "customary", "outcome": "refuse"}}
	refused.code == "not a code of a custom rule: customary"
}

test_the_record_of_a_session_that_is_not_known_counts_for_nothing if {
	not kept(object.union(good, {"request": {"session": "unknown"}}))
}
