"""Connections to sinks, and requests other than events: webhook handshakes and token renewals.

The HTTP client is in `projections/outgoing`.
Begin with `connect.py`.
"""
