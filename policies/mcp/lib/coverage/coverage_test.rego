package mcp.lib.coverage_test

import data.mcp.lib.coverage

aggregate := {"https://rs.example": ["https://rs.example/tools/*", "https://files.example"]}

test_covered[resource] if {
	some resource in [
		"https://rs.example",
		"https://rs.example/tools/search",
		"https://rs.example/tools/search/v2",
		"https://rs.example/tools/caf%C3%A9",
		"https://rs.example/tools/...",
		"https://files.example",
	]
	coverage.covered(["https://rs.example"], resource) with data.mcp.coverage as aggregate
}

test_not_covered[resource] if {
	some resource in [
		"https://rs.example/tools",
		"https://rs.example/tools/",
		"https://rs.example/tools2/search",
		"https://rs.example/tools//search",
		"https://rs.example/tools/../admin",
		"https://rs.example/tools/%2e%2E/admin",
		"https://rs.example/tools/.%2e/admin",
		"https://rs.example/tools/a%2Fb",
		"https://rs.example/tools/a%5cb",
		`https://rs.example/tools/a\b`,
		"https://rs.example/tools/100%",
		"https://rs.example/tools/100%zz",
		"https://rs.example/tools/search?x",
		"https://rs.example/tools/search#x",
		"https://rs.example/tools/se arch",
		"https://RS.example/tools/search",
		"https://rs.example.evil.example/tools/search",
		"https://files.example/x",
	]
	not coverage.covered(["https://rs.example"], resource) with data.mcp.coverage as aggregate
}

test_coverage_is_one_step if {
	steps := {"https://a.example": ["https://b.example"], "https://b.example": ["https://c.example"]}
	coverage.covered(["https://a.example"], "https://b.example") with data.mcp.coverage as steps
	coverage.covered(["https://b.example"], "https://c.example") with data.mcp.coverage as steps
	not coverage.covered(["https://a.example"], "https://c.example") with data.mcp.coverage as steps
}

test_all_covered if {
	coverage.all_covered(["https://rs.example"], ["https://files.example", "https://rs.example/tools/x"]) with data.mcp.coverage as aggregate
	not coverage.all_covered(["https://rs.example"], ["https://files.example", "https://b.example"]) with data.mcp.coverage as aggregate
}

names_of_one := [["https://rs.example", "mcp://rs"], ["https://rs.example/tools/search", "mcp://search"]]

test_names if {
	coverage.names("mcp://rs") == {"mcp://rs", "https://rs.example"} with data.mcp.aliases as names_of_one
	coverage.names("mcp://other") == {"mcp://other"} with data.mcp.aliases as names_of_one
}

test_names_are_equal_wherever_indicators_are_compared[what] if {
	some what, [audience, resource] in {
		"the audience": ["mcp://rs", "https://rs.example"],
		"the resource": ["https://rs.example/tools/search", "mcp://search"],
		"both, through coverage": ["mcp://rs", "mcp://search"],
	}
	coverage.covered([audience], resource) with data.mcp.coverage as aggregate
		with data.mcp.aliases as names_of_one
}

test_names_of_other_resources_are_not_equal if {
	not coverage.covered(["mcp://search"], "mcp://rs") with data.mcp.coverage as aggregate
		with data.mcp.aliases as names_of_one
}

own(resource) if {
	coverage.own(resource) with data.mcp.resources as ["https://rs.example"]
		with data.mcp.coverage as {"https://all.example": ["https://one.example", "https://many.example/t/*"]}
		with data.mcp.tools as {"search": {"aud": ["https://tool.example"], "scope": ["a"]}}
		with data.mcp.methods as {"resources/read": {"aud": ["https://method.example"], "scope": []}}
		with data.mcp.session_need as {"aud": ["https://session.example"], "scope": []}
		with data.mcp.aliases as [["https://rs.example", "mcp://rs"]]
}

test_own[resource] if {
	some resource in [
		"https://rs.example",
		"https://all.example",
		"https://one.example",
		"https://many.example/t/x",
		"https://tool.example",
		"https://method.example",
		"https://session.example",
		"mcp://rs",
	]
	own(resource)
}

test_not_own[resource] if {
	some resource in ["https://other.example", "https://many.example/t", "https://rs.example/x", "search", "a"]
	not own(resource)
}
