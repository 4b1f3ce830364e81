package mcp.lib.binding_test

import data.mcp.lib.binding

alice := {
	"iss": "https://as.example",
	"sub": "alice",
	"client_id": "desktop",
	"aud": ["https://rs.example"],
	"scope": ["a"],
}

facts(recorded, presented) := {
	"session": {"binding": object.union(alice, recorded)},
	"presented": object.union(alice, presented),
}

test_the_same_principal if {
	binding.identity_kept with input as facts({}, {})
	binding.identity_drift == [] with input as facts({}, {})
}

test_another_principal[claim] if {
	some claim in ["iss", "sub", "client_id", "cnf"]
	presented := {claim: "another"}
	not binding.identity_kept with input as facts({}, presented)
	binding.identity_drift == [claim] with input as facts({}, presented)
}

test_absent_equals_only_absent if {
	not binding.identity_kept with input as facts({"cnf": {"jkt": "k"}}, {})
	not binding.identity_kept with input as facts({}, {"cnf": {"jkt": "k"}})
	binding.identity_kept with input as facts({"cnf": {"jkt": "k"}}, {"cnf": {"jkt": "k"}})
}

test_claims_that_data_names_are_identity if {
	drifted := facts({"org_id": "x"}, {"org_id": "y"})
	binding.identity_kept with input as drifted with data.mcp.identity_claims as []
	not binding.identity_kept with input as drifted with data.mcp.identity_claims as ["org_id"]
	binding.identity_drift == ["org_id"] with input as drifted with data.mcp.identity_claims as ["org_id"]
}

test_a_token_is_not_the_principal_of_an_anonymous_session if {
	taken_over := {"session": {"binding": {"anonymous": true}}, "presented": alice}
	not binding.identity_kept with input as taken_over
	binding.identity_drift == ["client_id", "iss", "sub"] with input as taken_over
}

# What each profile says of a change.
changes := {
	"none": {"recorded": {}, "presented": {}},
	"narrower": {"recorded": {}, "presented": {"aud": ["https://rs.example/tools/search"]}},
	"wider": {"recorded": {"aud": ["https://rs.example/tools/search"]}, "presented": {}},
	"sideways": {
		"recorded": {"aud": ["https://rs.example/tools/search"]},
		"presented": {"aud": ["https://rs.example/tools/fetch"]},
	},
	"another name": {"recorded": {}, "presented": {"aud": ["mcp://rs"]}},
	"not this server's": {"recorded": {}, "presented": {"aud": ["https://other.example"]}},
	"no longer this server's": {"recorded": {"aud": ["https://other.example"]}, "presented": {}},
	"no audience": {"recorded": {}, "presented": {"aud": []}},
	"more scope": {"recorded": {}, "presented": {"scope": ["b", "a"]}},
	"less scope": {"recorded": {}, "presented": {"scope": []}},
}

drift(profile) := {change: claims |
	some change, {"recorded": recorded, "presented": presented} in changes
	claims := binding.profile_drift with input as facts(recorded, presented)
		with data.mcp.profile as profile
		with data.mcp.resources as ["https://rs.example"]
		with data.mcp.coverage as {"https://rs.example": ["https://rs.example/tools/*"]}
		with data.mcp.aliases as [["https://rs.example", "mcp://rs"]]
}

test_strict if drift("strict") == {
	"none": [],
	"narrower": ["aud"],
	"wider": ["aud"],
	"sideways": ["aud"],
	"another name": [],
	"not this server's": ["aud"],
	"no longer this server's": ["aud"],
	"no audience": ["aud"],
	"more scope": ["scope"],
	"less scope": ["scope"],
}

test_covering if drift("covering") == {
	"none": [],
	"narrower": [],
	"wider": [],
	"sideways": ["aud"],
	"another name": [],
	"not this server's": ["aud"],
	"no longer this server's": ["aud"],
	"no audience": ["aud"],
	"more scope": [],
	"less scope": ["scope"],
}

test_per_tool if drift("per-tool") == {
	"none": [],
	"narrower": [],
	"wider": [],
	"sideways": [],
	"another name": [],
	"not this server's": ["aud"],
	"no longer this server's": [],
	"no audience": ["aud"],
	"more scope": [],
	"less scope": [],
}

test_no_profile_keeps_nothing if drift("none of these").none == ["aud", "scope"]

test_kept_is_no_drift if {
	binding.profile_kept with input as facts({}, {})
		with data.mcp.resources as ["https://rs.example"]
	not binding.profile_kept with input as facts({}, {"scope": []})
		with data.mcp.resources as ["https://rs.example"]
}
