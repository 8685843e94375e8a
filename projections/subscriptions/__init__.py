"""Delivery of subscribed events to sinks, at least once and in order, derived from the log.

Not here: the Subscription entity and its rules (`annals.domain.subscriptions`), its HTTP API
(`annals.api.subscriptions`). Begin with `service.py`, then `workers/deliverer.py`.
"""
