"""Decisions about writes through the two legacy APIs.

Their ids, URIs and documents are in `domain/compat`.
Begin with `write.py` and `version_numbers.py`.
"""
