"""Karapace's own tests of its HTTP API, run against this registry. See `__main__.py`."""
