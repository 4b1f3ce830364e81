# METADATA
# title: The parts that every answer has
package mcp.lib.answer

# METADATA
# title: An answer other than proceed, in the shape that every moment shares
# description: "`usual` is the HTTP status unless data.mcp.status names another for this code."
refusal(outcome, code, session, usual) := {
	"outcome": outcome,
	"code": code,
	"drift": [],
	"session": session,
	"status": status(code, usual),
}

# METADATA
# title: Proceed, in the shape that every moment shares
proceed := {
	"outcome": "proceed",
	"code": "covered",
	"drift": [],
	"session": "keep",
	"status": 200,
}

# METADATA
# title: The HTTP status of a code
status(code, usual) := object.get(data.mcp.status, code, usual)
