"""The stored state of deliveries: tables, records of subscriptions, leases.

Decisions based on it are in `decisions`.
Begin with `tables.py` and `delivery_record.py`.
"""
