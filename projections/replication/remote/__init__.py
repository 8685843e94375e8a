"""The other registry of a link: its HTTP client, with guarded connections and limits, and a subscription there.

Not here: the requests of each kind of link (`log`, `standard`, `compat`).
Begin with `remote_client.py`.
"""
