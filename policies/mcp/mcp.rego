# METADATA
# scope: subpackages
# title: Whether a token may go on with a session, and which of the missed events it may be sent
# description: |
#   `mcp.<moment>.decision` answers, for the moments session, call, resume and delivery. The facts are `input`
#   (schemas/facts.json), by which `opa check --schema schemas` types the rules. The policy data is `data.mcp`
#   (schemas/data.json); OPA cannot type it, since the packages lie below the same name.
# schemas:
#   - input: schema.facts
package mcp
