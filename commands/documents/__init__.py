"""Checks of documents in worker processes with limits on time and memory, before the write lock is taken.

The checks themselves are in `domain/formats` and `domain/decisions/rules/formats.py`.
Begin with `check_scheduler.py`.
"""
