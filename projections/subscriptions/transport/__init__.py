"""Requests that deliveries make beside events: handshakes of webhooks, renewed tokens, connections.

The HTTP client is in `projections/outgoing`.
Begin with `connect.py`.
"""
