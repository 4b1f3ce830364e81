# Refusals of your own. A rule here can only refuse: it adds to `refusal` an object with
#
# - `code`: `custom:` and a name in lower case
# - `outcome`: `refuse`, `reauthenticate` or `reinitialize`
# - `session`: `keep` (if absent) or `end`
# - `status`: the HTTP status, 400 to 599 (if absent, 403)
#
# It reads the facts as `input` (schemas/facts.json) and is asked at the moments session, call and resume, once the
# token, the session and the binding have been found good. An example; its test is in refusals_test.rego:
#
# refusal contains {"code": "custom:session_too_old", "outcome": "reinitialize", "session": "end"} if {
# 	input.now - input.session.opened_at > (8 * 60) * 60
# }
package mcp.custom
