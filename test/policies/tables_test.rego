# The decision tables (test/cases/*.json) put to OPA itself. `npm run test:policy` loads them as data.tables.
package tables_test

test_decision[name] if {
	some name, case in data.tables
	answer := data.mcp[case.moment].decision with input as case.input
		with data.mcp.aliases as case.data.aliases
		with data.mcp.anonymous as case.data.anonymous
		with data.mcp.clock_skew as case.data.clock_skew
		with data.mcp.coverage as case.data.coverage
		with data.mcp.foreign_principal as case.data.foreign_principal
		with data.mcp.identity_claims as case.data.identity_claims
		with data.mcp.methods as case.data.methods
		with data.mcp.profile as case.data.profile
		with data.mcp.replay as case.data.replay
		with data.mcp.resources as case.data.resources
		with data.mcp.session_need as case.data.session_need
		with data.mcp.status as case.data.status
		with data.mcp.tools as case.data.tools

	# As hosts get it: in JSON a set is an array.
	decision := json.unmarshal(json.marshal(answer))
	every member, wanted in case.want {
		decision[member] == wanted
	}
}

test_every_member_of_the_data_is_set if {
	some case in data.tables
	object.keys(case.data) == {
		"aliases",
		"anonymous",
		"clock_skew",
		"coverage",
		"foreign_principal",
		"identity_claims",
		"methods",
		"profile",
		"replay",
		"resources",
		"session_need",
		"status",
		"tools",
	}
}
