"""Events that others read: xRegistry events, and the families of events that feeds and subscriptions choose from.

Events of the log are in `domain/registry`; those of the legacy APIs in `projections/compat`.
Begin with `xregistry_events.py`.
"""
