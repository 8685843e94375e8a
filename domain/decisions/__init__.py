"""Commands, and how each is decided: a command and the current World result in events, or in an error.

Entities and events are in `registry`; decisions about the legacy APIs and links are in `compat` and `replication`.
Begin with `decide.py`.
"""
