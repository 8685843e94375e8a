"""The history in the log: revisions, interactions, and the difference between two moments.

The HTTP responses are in `api/audit`; the hashes of single entities are in `commands/store/hashes.py`.
Begin with `trail.py`.
"""
