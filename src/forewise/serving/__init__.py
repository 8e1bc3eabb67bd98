"""Policies behind an API: `forewise serve`; the extra `serve` has the packages it needs.

`reading` takes requests apart, `deciding` answers them by a policy, `batching` gathers what waits,
`shelf` keeps the current edition of every policy, `gate` has the limits and the token, `app` the
endpoints, `card` what the service says of itself, `telemetry` metrics and logs, `server` runs it.
No request names a file, an address or code. Nothing here trains, and nothing is imported by this
module: `forewise.serving.app.create_app` and `forewise.serving.server.run` are where to begin.
"""
