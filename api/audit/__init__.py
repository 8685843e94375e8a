"""The audit trail over HTTP: history, interactions, differences and hashes, as JSON, NDJSON or CSV.

The queries themselves run in `projections/audit`.
Begin with `history.py`, then `queries.py` and `responses.py`.
"""
