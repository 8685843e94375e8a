"""Brokers that tests start, the suite that every sink passes, and certificates."""
