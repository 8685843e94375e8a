"""Feeds over HTTP: the log, CloudEvents made from it, and documents, in order, for readers that resume.

How events are made from the log is in `projections/events`.
Begin with `feeds.py`, then `sources.py` and `reader.py`.
"""
