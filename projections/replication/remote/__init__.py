"""The other registry of a link: its HTTP client, with guarded connections and limits, and a subscription there.

Not here: what is asked of it (`log`, `standard`, `compat`).
Begin with `remote_client.py`.
"""
