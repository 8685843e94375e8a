"""Filters, sorting and pages over the read model, by its index or by a scan.

The language of filters is in `domain/filters`; the tables are in the folder above.
Begin with `selection.py` and `by_index.py`.
"""
