"""Replication: what this registry remembers of the logs that it follows."""
