"""Commands and how each is decided: from a command and the world to events, or to an error.

State belongs to `registry`; commands about subscriptions, links and the legacy APIs to the rooms of these.
Begin with `decide.py`.
"""
