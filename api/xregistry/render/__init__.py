"""Responses of the xRegistry API: entities as JSON, documents with headers.

`api/xregistry/reading.py` decides which rows are read.
Begin with `response.py`.
"""
