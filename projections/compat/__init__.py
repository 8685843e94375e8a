"""The data that the two legacy APIs show: definitions with their numbers, and their events.

Their HTTP is in `api/compat`, their rules are in `domain/compat`.
Begin with `definitions.py`.
"""
