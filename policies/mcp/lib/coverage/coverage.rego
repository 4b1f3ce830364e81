# METADATA
# title: Which audience stands for which resource indicator
# description: |
#   RFC 8707 indicators and RFC 7519 audiences are compared exactly. What stands for what is data
#   (`coverage`, `aliases`), one step, never guessed and never transitive.
package mcp.lib.coverage

# METADATA
# title: One of these audiences stands for the resource
covered(audiences, resource) if {
	resource in audiences
} else if {
	some audience in audiences
	some entry in data.mcp.coverage[audience]
	matches(entry, resource)
} else if {
	count(data.mcp.aliases) > 0
	some audience in audiences
	some name in names(audience)
	some other in names(resource)
	stands_for(name, other)
}

# METADATA
# title: These audiences stand for each of the resources
all_covered(audiences, resources) if {
	every resource in resources {
		covered(audiences, resource)
	}
}

# METADATA
# title: All names of a resource, its own among them
names(resource) := {resource} | {name |
	some set in data.mcp.aliases
	resource in set
	some name in set
}

# METADATA
# title: This server's own resource
# description: Data names it, or it lies below a wildcard of coverage. The token verifier accepts the same.
own(resource) if {
	resource in data.mcp.resources
} else if {
	data.mcp.coverage[resource]
} else if {
	some audience
	some entry in data.mcp.coverage[audience]
	matches(entry, resource)
} else if {
	some tool
	resource in data.mcp.tools[tool].aud
} else if {
	some method
	resource in data.mcp.methods[method].aud
} else if {
	resource in data.mcp.session_need.aud
} else if {
	some set in data.mcp.aliases
	resource in set
}

stands_for(audience, resource) if {
	audience == resource
} else if {
	some entry in data.mcp.coverage[audience]
	matches(entry, resource)
}

# An entry is exact, or ends in `/*` and stands for what lies below.
matches(entry, resource) if {
	entry == resource
	not endswith(entry, "/*")
} else if {
	endswith(entry, "/*")
	prefix := trim_suffix(entry, "*")
	startswith(resource, prefix)
	is_below(trim_prefix(resource, prefix))
}

# A path whose meaning a server might normalise away, or that is no path of a URI (RFC 3986 section 3.3), is below
# nothing.
is_below(path) if {
	trim_left(path, path_characters) == ""
	path != ""
	not startswith(path, "/")
	not endswith(path, "/")
	not contains(path, "//")
	has_plain_segments(path)
}

has_plain_segments(path) if {
	not contains(path, ".")
	not contains(path, "%")
} else if {
	not has_odd_encoding(path)
	every segment in split(path, "/") {
		not dot_segment(segment)
	}
}

path_characters := "/abcdefghijklmnopqrstuvwxyz-.0123456789_~ABCDEFGHIJKLMNOPQRSTUVWXYZ%:@!$&'()+,;="

# An encoded separator, or a percent sign that encodes nothing.
has_odd_encoding(path) if {
	some i, part in split(path, "%")
	i > 0
	not plain_octet(lower(substring(part, 0, 2)))
}

plain_octet(digits) if {
	count(digits) == 2
	trim_left(digits, "0123456789abcdef") == ""
	not digits in {"2f", "5c"}
}

dot_segment(".")

dot_segment("..")

dot_segment(segment) if {
	contains(segment, "%")
	replace(lower(segment), "%2e", ".") in {".", ".."}
}
