package mcp.lib.need_test

import data.mcp.lib.need

tools := {
	"search": {"aud": ["https://rs.example/search"], "scope": []},
	"*": {"aud": ["https://rs.example/rest"], "scope": []},
}

methods := {
	"resources/read": {"aud": ["https://rs.example"], "scope": ["files"]},
	"*": {"aud": ["https://rs.example/rest"], "scope": []},
}

test_of_tool if {
	need.of_tool("search") == tools.search with data.mcp.tools as tools
	need.of_tool("fetch") == tools["*"] with data.mcp.tools as tools
	not need.of_tool("fetch") with data.mcp.tools as {"search": tools.search}
}

test_of_method if {
	need.of_method("resources/read") == methods["resources/read"] with data.mcp.methods as methods
	need.of_method("prompts/get") == methods["*"] with data.mcp.methods as methods
}

test_the_wildcard_does_not_reach_results_of_other_calls if {
	not need.of_method("tasks/result") with data.mcp.methods as methods
	mapped := object.union(methods, {"tasks/result": methods["resources/read"]})
	need.of_method("tasks/result") == methods["resources/read"] with data.mcp.methods as mapped
}

search(audiences) := {"tool": "search", "aud": audiences, "scope": []}

test_a_label_as_data_has_it_now_is_its_own_need if {
	label := search(["https://rs.example/search"])
	need.of_label(label) == label with data.mcp.tools as tools
}

test_raising_a_need_takes_effect_at_once if {
	label := search(["https://rs.example/old"])
	need.of_label(label).aud == ["https://rs.example/old", "https://rs.example/search"] with data.mcp.tools as tools
}

test_lowering_a_need_does_not_free_what_was_produced_before if {
	label := search(["https://rs.example/search"])
	need.of_label(label).aud == ["https://rs.example/search"] with data.mcp.tools as {"search": {"aud": [], "scope": []}}
}

test_what_is_no_longer_mapped_keeps_its_label if {
	label := search(["https://rs.example/search"])
	need.of_label(label).aud == ["https://rs.example/search"] with data.mcp.tools as {}
}

test_a_label_of_a_method if {
	label := {"rpc": "resources/read", "aud": ["https://rs.example"], "scope": []}
	need.of_label(label) == {"aud": ["https://rs.example"], "scope": ["files"]} with data.mcp.methods as methods
}

test_what_needs_nothing_needs_what_the_session_needs[what] if {
	some what, label in {
		"a session-level event": {"aud": [], "scope": []},
		"a tool's": {"tool": "echo", "aud": [], "scope": []},
	}
	session_need := {"aud": ["https://rs.example"], "scope": ["a"]}
	need.of_label(label) == session_need with data.mcp.session_need as session_need
		with data.mcp.tools as {"echo": {"aud": [], "scope": []}}
}

test_union_of if need.union_of([
	{"aud": ["b", "a"], "scope": ["y"]},
	{"aud": ["b"], "scope": ["x", "y"]},
]) == {"aud": ["a", "b"], "scope": ["x", "y"]}

presented := {"presented": {"aud": ["https://rs.example/search"], "scope": ["a"]}}

test_met if {
	need.met({"aud": ["https://rs.example/search"], "scope": ["a"]}) with input as presented
	not need.met({"aud": ["https://rs.example/fetch"], "scope": []}) with input as presented
	not need.met({"aud": [], "scope": ["b"]}) with input as presented
}

test_met_as_a_value if {
	need.is_met({"aud": [], "scope": ["a"]}) == true with input as presented
	need.is_met({"aud": [], "scope": ["b"]}) == false with input as presented
}

test_without_a_token_only_nothing_is_met if {
	need.met({"aud": [], "scope": []}) with input as {}
	not need.met({"aud": [], "scope": ["a"]}) with input as {}
	not need.met({"aud": ["https://rs.example"], "scope": []}) with input as {}
}

test_missing_is_sorted if {
	lacking := need.missing({"aud": ["z", "https://rs.example/search", "y"], "scope": ["c", "a", "b"]}) with input as presented
	lacking == {"aud": ["y", "z"], "scope": ["b", "c"]}
}

test_audience_is_named_before_scope if {
	need.code({"aud": ["a"], "scope": ["b"]}) == "audience_not_covered"
	need.code({"aud": [], "scope": ["b"]}) == "scope_not_covered"
	not need.code({"aud": [], "scope": []})
}

# The token that would proceed.

answer(profile, binding, needs) := asked if {
	facts := {"request": {"session": "known"}, "session": {"binding": binding}}
	asked := need.answer(needs) with input as facts
		with data.mcp.profile as profile
		with data.mcp.resources as ["https://first.example", "https://rs.example"]
		with data.mcp.coverage as {"https://rs.example": ["https://rs.example/tools/*"]}
		with data.mcp.tools as {}
		with data.mcp.methods as {}
}

search_and_b := {"aud": ["https://rs.example/tools/search"], "scope": ["b"]}

test_covering_the_needs_where_the_recorded_audience_covers_them if {
	answer("covering", {"aud": ["https://rs.example"], "scope": ["a"]}, search_and_b) == {
		"outcome": "reauthorize",
		"required": {"aud": ["https://rs.example/tools/search"], "scope": ["a", "b"]},
	}
}

test_covering_the_recorded_audience_too_where_it_does_not_cover_the_needs if {
	recorded := {"aud": ["https://other.example", "https://rs.example/tools/fetch"], "scope": []}
	answer("covering", recorded, search_and_b).required == {
		"aud": ["https://rs.example/tools/fetch", "https://rs.example/tools/search"],
		"scope": ["b"],
	}
}

test_covering_the_recorded_audience_where_no_audience_is_needed if {
	recorded := {"aud": ["https://rs.example"], "scope": []}
	answer("covering", recorded, {"aud": [], "scope": ["b"]}).required == {"aud": ["https://rs.example"], "scope": ["b"]}
}

test_per_tool_the_needs if {
	answer("per-tool", {"aud": ["https://rs.example"], "scope": ["a"]}, search_and_b).required == search_and_b
}

test_per_tool_the_first_resource_where_no_audience_is_needed if {
	recorded := {"aud": ["https://rs.example"], "scope": ["a"]}
	answer("per-tool", recorded, {"aud": [], "scope": ["b"]}).required == {"aud": ["https://first.example"], "scope": ["b"]}
}

test_strict_no_other_token_can_go_on if {
	answer("strict", {"aud": ["https://rs.example"], "scope": []}, search_and_b) == {"outcome": "reinitialize"}
}

test_anonymous_no_token_can_go_on[profile] if {
	some profile in ["covering", "per-tool"]
	answer(profile, {"anonymous": true}, search_and_b) == {"outcome": "reinitialize"}
}

test_no_token_of_this_server_can_have_the_audience[profile] if {
	some profile in ["covering", "per-tool"]
	recorded := {"aud": ["https://rs.example"], "scope": []}
	answer(profile, recorded, {"aud": ["https://old.example"], "scope": []}) == {"outcome": "reissue"}
}

test_without_a_session_the_needs[profile] if {
	some profile in ["strict", "covering", "per-tool"]
	asked := need.answer(search_and_b) with input as {
		"moment": "call",
		"request": {"method": "POST", "session": "none"},
	}
		with data.mcp.profile as profile
		with data.mcp.resources as search_and_b.aud
	asked == {"outcome": "reauthorize", "required": search_and_b}
}

test_no_token_can_go_on_in_a_session_that_is_not_known[profile] if {
	some profile in ["strict", "covering", "per-tool"]
	asked := need.answer(search_and_b) with input as {"moment": "call", "request": {"method": "POST", "session": "unknown"}}
		with data.mcp.profile as profile
		with data.mcp.resources as search_and_b.aud
	asked == {"outcome": "reinitialize"}
}
