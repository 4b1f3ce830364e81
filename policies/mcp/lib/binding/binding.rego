# METADATA
# title: What a session was opened with, against what is presented now
package mcp.lib.binding

import data.mcp.lib.coverage

# METADATA
# title: The same principal
# description: Identity is compared for equality; absent equals only absent.
identity_kept if {
	input.presented.iss == input.session.binding.iss
	input.presented.sub == input.session.binding.sub
	same("client_id")
	same("cnf")
	every claim in data.mcp.identity_claims {
		same(claim)
	}
}

# METADATA
# title: The identity claims that differ
identity_drift := sort([claim |
	some claim in array.concat(["iss", "sub", "client_id", "cnf"], data.mcp.identity_claims)
	not same(claim)
])

same(claim) if object.get(input.presented, claim, null) == object.get(input.session.binding, claim, null)

# METADATA
# title: aud and scope have changed in no other way than the profile allows
profile_kept if {
	aud_kept
	scope_kept
}

# METADATA
# title: The claims that broke the profile
profile_drift := array.concat(
	[claim | some claim in ["aud"]; not aud_kept],
	[claim | some claim in ["scope"]; not scope_kept],
)

# METADATA
# title: aud under the profile
aud_kept if {
	data.mcp.profile == "covering"
	count(recorded_own) > 0
	narrower_or_wider
} else if {
	data.mcp.profile == "per-tool"
	presented_is_own
} else if {
	data.mcp.profile == "strict"
	same_resources(input.presented.aud, input.session.binding.aud)
}

# METADATA
# title: scope under the profile
scope_kept if {
	data.mcp.profile == "covering"
	every scope in input.session.binding.scope {
		scope in input.presented.scope
	}
} else if {
	data.mcp.profile == "per-tool"
} else if {
	data.mcp.profile == "strict"
	{scope | some scope in input.presented.scope} == {scope | some scope in input.session.binding.scope}
}

# METADATA
# title: The recorded audiences that are this server's own
recorded_own := [audience |
	some audience in input.session.binding.aud
	coverage.own(audience)
]

presented_own := [audience |
	some audience in input.presented.aud
	coverage.own(audience)
]

presented_is_own if count(presented_own) > 0

# Sideways, which is neither, is another resource: the audience was rotated. The first is the second's usual case,
# at less cost: what one's own resource covers is one's own.
narrower_or_wider if {
	count(input.presented.aud) > 0
	coverage.all_covered(recorded_own, input.presented.aud)
} else if {
	presented_is_own
	coverage.all_covered(recorded_own, presented_own)
} else if {
	presented_is_own
	coverage.all_covered(presented_own, recorded_own)
}

same_resources(some_audiences, others) if {
	canonical(some_audiences) == canonical(others)
}

canonical(audiences) := {coverage.names(audience) | some audience in audiences}
