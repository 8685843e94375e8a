"""Reads the log: its rows, its JSON lines for clients, its documents, and the position of each projection in it.

Writing the log belongs to `commands/store`.
Begin with `reader.py`.
"""
