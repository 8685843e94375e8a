"""Reading the log: its rows, its lines as clients get them, and projections that follow it.

Writing the log belongs to `commands/store`.
Begin with `reader.py` and `follower.py`.
"""
