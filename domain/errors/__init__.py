"""Every error that a request can end with, one exception class each.

How an error becomes an HTTP response is in `api/http`.
Begin with `problems.py`, the types of the specifications; `http_errors.py` has those that they leave to HTTP.
"""
