"""Verifies that the read model is what the log makes of it.

The log itself is verified in `commands/verify`.
Begin with `verify_history.py`.
"""
