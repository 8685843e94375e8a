"""Brokers of the test's own, the suite that every sink passes, and certificates."""
