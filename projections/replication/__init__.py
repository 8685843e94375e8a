"""Replication: following the logs of other registries, and writing to others, one thread for each link."""
