"""Replication links over HTTP."""
