"""API keys and grants as authentication reads them, and when keys were last used.

Begin with `stored_access.py`.
"""
