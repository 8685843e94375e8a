"""Connections from this process to others: the allowed addresses, and one HTTP client for all.

The content that is sent belongs to the folder that sends it.
Begin with `destination_guard.py`.
"""
