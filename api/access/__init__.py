"""API keys and grants over HTTP: `/-/keys`, `/-/grants`, and `/-/access/<path>`.

Begin with `collections.py`, which the first two share.
"""
