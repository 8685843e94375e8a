"""Proves that a log is unchanged: counts, chains and sums every event again.

Comparing read models with the log belongs to `projections`.
Begin with `verify_log.py`. The hashes are in `commands/store/hashes.py`.
"""
