"""What is stored of deliveries: tables, records of subscriptions, leases.

What follows from it is in `decisions`.
Begin with `tables.py` and `delivery_record.py`.
"""
