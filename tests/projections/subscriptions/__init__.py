"""Deliveries: a folder for each part of `projections/subscriptions/`."""
