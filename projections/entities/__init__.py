"""The REST read model: one row for each live entity, for each replaced state, and for each scalar leaf.

Reading the log belongs to `projections/log`; JSON responses belong to `api/xregistry`.
Begin with `tables.py`, `apply.py` and `view.py`.
"""
