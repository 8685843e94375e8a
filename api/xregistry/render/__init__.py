"""Answers of the xRegistry API: entities as JSON, documents with headers.

What is read is decided in `api/xregistry/reading.py`.
Begin with `response.py`.
"""
