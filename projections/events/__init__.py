"""Events for external readers: xRegistry events, and the event families that feeds and subscriptions select from.

Events of the log are in `domain/registry`; those of the legacy APIs in `projections/compat`.
Begin with `xregistry_events.py`.
"""
