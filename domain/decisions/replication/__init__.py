"""Decisions about replication links, and about the interactions that they deliver.

The link entity itself is in `domain/replication`.
Begin with `decide_links.py`.
"""
