# METADATA
# title: What an event or a request needs in the token, and what a token would need to have
# description: RFC 8707 resource indicators in `aud`, RFC 6749 scopes in `scope`; all of them.
package mcp.lib.need

import data.mcp.lib.binding
import data.mcp.lib.continuity
import data.mcp.lib.coverage

# METADATA
# title: What data maps a tool to now
of_tool(tool) := data.mcp.tools[tool] if data.mcp.tools[tool]

else := data.mcp.tools["*"]

# METADATA
# title: What data maps another method to now
# description: tasks/… hands out results of other calls, so that the wildcard does not reach it.
of_method(method) := data.mcp.methods[method] if data.mcp.methods[method]

else := data.mcp.methods["*"] if not startswith(method, "tasks/")

# METADATA
# title: What a label needs
# description: |
#   What it needed when it was stored and what data maps its tool or method to now: raising a need takes effect
#   at once, lowering it does not free what was produced before. What needs nothing needs `session_need`.
of_label(label) := label if {
	now := mapped(label)
	label.aud == now.aud
	label.scope == now.scope
	not needs_nothing(label)
} else := union_of([label, mapped(label)]) if {
	not needs_nothing(label)
} else := union_of([label, mapped(label), data.mcp.session_need])

mapped(label) := of_tool(label.tool) if label.tool

else := of_method(label.rpc) if label.rpc

else := data.mcp.session_need if not is_of_call(label)

else := {"aud": [], "scope": []}

is_of_call(label) if label.tool

is_of_call(label) if label.rpc

needs_nothing(label) if {
	label.aud == []
	label.scope == []
}

# METADATA
# title: The needs together, each value once and sorted
union_of(needs) := {
	"aud": sort({audience | some need in needs; some audience in need.aud}),
	"scope": sort({scope | some need in needs; some scope in need.scope}),
}

# METADATA
# title: The presented token has all that is needed
# description: A need of nothing is met without a token; the token itself is looked at elsewhere.
met(need) if {
	every audience in need.aud {
		coverage.covered(presented_aud, audience)
	}
	every scope in need.scope {
		scope in presented_scope
	}
}

# METADATA
# title: Whether the presented token has all that is needed, as a value
is_met(need) if met(need)

else := false

# METADATA
# title: What the presented token lacks of a need
missing(need) := {
	"aud": sort([audience | some audience in need.aud; not coverage.covered(presented_aud, audience)]),
	"scope": sort([scope | some scope in need.scope; not scope in presented_scope]),
}

presented_aud := object.get(input, ["presented", "aud"], [])

presented_scope := object.get(input, ["presented", "scope"], [])

# METADATA
# title: The code for what is missing
code(lacking) := "audience_not_covered" if count(lacking.aud) > 0

else := "scope_not_covered" if count(lacking.scope) > 0

# METADATA
# title: The outcome where a need is not met, and the token that would proceed
# description: |
#   `reauthorize`, unless no other token can go on in this session (`reinitialize`: an anonymous session, or
#   the strict profile), or no token for this server could have the audience (`reissue`).
answer(needs) := {"outcome": "reinitialize"} if {
	not another_token_may_proceed
} else := {"outcome": "reauthorize", "required": required} if {
	required := {"aud": audience_for(needs), "scope": scope_for(needs)}
} else := {"outcome": "reissue"}

another_token_may_proceed if continuity.without_session

another_token_may_proceed if {
	continuity.in_session
	data.mcp.profile in {"covering", "per-tool"}
	not input.session.binding.anonymous
}

# Undefined if a token for this server cannot have it. What one's own resource covers is one's own.
audience_for(needs) := needs.aud if {
	recorded_counts
	count(needs.aud) > 0
	coverage.all_covered(binding.recorded_own, needs.aud)
} else := union_of([needs, {"aud": binding.recorded_own, "scope": []}]).aud if {
	recorded_counts
	count(binding.recorded_own) > 0
	all_own(needs.aud)
} else := needs.aud if {
	not recorded_counts
	count(needs.aud) > 0
	all_own(needs.aud)
} else := [data.mcp.resources[0]] if {
	not recorded_counts
	count(needs.aud) == 0
}

all_own(audiences) if {
	every audience in audiences {
		coverage.own(audience)
	}
}

scope_for(needs) := union_of([needs, {"aud": [], "scope": input.session.binding.scope}]).scope if {
	recorded_counts
} else := needs.scope

recorded_counts if {
	continuity.in_session
	data.mcp.profile == "covering"
}
