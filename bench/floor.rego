# METADATA
# title: The floor of the technique
# description: |
#   Policies that look at nothing, and answer what mcp/session and mcp/resume answer to the questions of
#   bench/questions.ts. What they cost is what it costs to ask a policy in Wasm at all.
package floor

# METADATA
# title: What every session question of the benchmark is answered with
# entrypoint: true
session := {
	"outcome": "proceed",
	"code": "covered",
	"drift": [],
	"session": "keep",
	"status": 200,
	"label": {"aud": [], "scope": []},
}

# METADATA
# title: Story 1 under the narrow token
# entrypoint: true
narrow := {
	"outcome": "reauthorize",
	"code": "audience_not_covered",
	"deliver": 0,
	"cursor": "41",
	"held": {
		"event_id": "48",
		"tool": "fetch",
		"request_id": 8,
		"missing": {"aud": ["https://mcp.example.com/tools/fetch"], "scope": []},
	},
	"required": {
		"aud": ["https://mcp.example.com/tools/fetch", "https://mcp.example.com/tools/search"],
		"scope": ["tools:call", "tools:read"],
	},
	"drift": [],
	"session": "keep",
	"status": 403,
}

# METADATA
# title: Story 1 under the wide token
# entrypoint: true
wide := {
	"outcome": "proceed",
	"code": "covered",
	"deliver": 7,
	"cursor": "48",
	"drift": [],
	"session": "keep",
	"status": 200,
}
