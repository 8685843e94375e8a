"""Decisions about deliveries, without I/O."""
