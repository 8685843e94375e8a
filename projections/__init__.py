"""What is derived from the log, each part disposable and rebuildable, and the state that is stored next to the log.

Not derived from the log: the state of deliveries and links, sessions, the last uses of API keys, and refused writes.
Writing the log belongs to `commands`; wire formats belong to `api`.
Begin with `projections/log/reader.py` and `projections/entities/apply.py`.
"""
