"""The Subscriptions API over HTTP: subscriptions, their actions and dead letters, and previews.

Matching and delivery are in `projections/subscriptions`, the rules in `domain/subscriptions`.
Begin with `routes.py`, then `reading.py` and `writing.py`.
"""
