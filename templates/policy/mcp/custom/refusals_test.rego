package mcp.refusals_test

opened_at := 1796000000

hour := 60 * 60

# The same token that opened the session lists the tools, at that age of the session.
facts(age) := {
	"moment": "session",
	"now": opened_at + age,
	"request": {"method": "POST", "transport": "streamable-http", "session": "known"},
	"rpc": "tools/list",
	"session": {"binding": claims, "transport": "streamable-http", "opened_at": opened_at},
	"presented": object.union(claims, {"exp": (opened_at + age) + 60}),
}

claims := {
	"iss": "https://as.example.com",
	"sub": "alice",
	"client_id": "desktop",
	"aud": [data.mcp.resources[0]],
	"scope": data.mcp.session_need.scope,
}

test_a_young_session_goes_on if {
	decision := data.mcp.session.decision with input as facts(hour)
	decision.outcome == "proceed"
}

# test_a_session_of_nine_hours_is_too_old if {
# 	decision := data.mcp.session.decision with input as facts(9 * hour)
# 	decision.code == "custom:session_too_old"
# }
