"""Subscriptions: their documents, and which events they select.

Spec: CloudEvents Subscriptions; rules SUB where it is open.

Commands about them are in `decisions/subscriptions.py`, deliveries in `projections/subscriptions`.
Begin with `subscription.py` and `subscription_document.py`.
"""
