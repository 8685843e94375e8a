"""Connections from this process to others: which addresses are allowed, one HTTP client for all.

What is sent belongs to the room that sends it.
Begin with `destination_guard.py`.
"""
