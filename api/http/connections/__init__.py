"""Connections to clients: limits while bytes arrive, writes in one piece, and trusted proxies.

Limits of parsed requests are in `limits.py` of the folder above.
Begin with `protocol.py`.
"""
