"""`/-/check`: a document checked as the next Version of a Resource, without writing it.

Checks themselves are in `domain/formats`.
Begin with `check.py`.
"""
