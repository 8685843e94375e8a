"""Checks of documents in bounded worker processes, before the write lock is taken.

What the checks are is in `domain/formats` and `domain/decisions/rules/formats.py`.
Begin with `check_scheduler.py`.
"""
