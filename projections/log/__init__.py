"""Reads the log: its rows, its JSON lines for clients, and projections that follow it.

Writing the log belongs to `commands/store`.
Begin with `reader.py`.
"""
