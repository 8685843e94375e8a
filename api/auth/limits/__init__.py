"""Limits of callers: failed attempts and rates of requests; and the count and the log of what is denied.

Limits of connections and of the size of requests are in `api/http`.
Begin with `failed_attempts.py`.
"""
