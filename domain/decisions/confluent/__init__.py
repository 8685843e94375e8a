"""Decisions of Confluent's API: registering, deleting, settings, and the ids of schemas that any API writes.

The rules that need no change set are in `domain/confluent`. Begin with `register.py`.
"""
