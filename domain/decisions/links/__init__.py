"""Decisions about replication links, and about what arrives over them.

What a link is is in `domain/replication`.
Begin with `decide_links.py`.
"""
