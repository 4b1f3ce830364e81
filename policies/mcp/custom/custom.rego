# METADATA
# title: The operator's own refusals
# description: |
#   A rule here can only refuse. It adds an object to `refusal`:
#
#   - `code`: `custom:` and a name in lower case, such as `custom:session_too_old`
#   - `outcome`: `refuse`, `reauthenticate` or `reinitialize`
#   - `session`: `keep` (default) or `end`
#   - `status`: the HTTP status, 400 to 599 (default 403)
#
#   It reads the facts as `input` and may tell moments apart by `input.moment`. It is asked at the moments
#   session, call and resume, after the token, the session and the binding have been found good. For example:
#
#       refusal contains {"code": "custom:session_too_old", "outcome": "reinitialize", "session": "end"} if {
#           input.now - input.session.opened_at > (8 * 60) * 60
#       }
package mcp.custom

# METADATA
# title: What the operator refuses; nothing, as shipped
refusal contains answer if some answer in nothing

nothing := set()
