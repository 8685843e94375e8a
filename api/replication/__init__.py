"""Replication links over HTTP: `/-/links` for administrators, and the endpoints that other registries call.

Copying itself is in `projections/replication`, its rules in `domain/replication`.
Begin with `routes.py`, then `receive.py` and `notifications.py`.
"""
