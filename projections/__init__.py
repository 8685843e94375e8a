"""Everything derived from the log, each part disposable and rebuildable.

Writing the log belongs to `commands`; wire formats belong to `api`.
Begin with `projections/log/reader.py` and `projections/entities/apply.py`.
"""
