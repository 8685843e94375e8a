"""The durable store: the event log, the write lock, secrets, and the world that decisions read.

What is derived from the log belongs to `projections`.
Begin with `log.py` and `database/tables.py`.
"""
