"""Proof that a log is what was once written: every event counted, chained and summed again.

Comparing read models with the log belongs to `projections`.
Begin with `verify_log.py`. The hashes are in `commands/store/hashes.py`.
"""
