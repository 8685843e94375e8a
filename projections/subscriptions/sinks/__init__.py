"""Sinks, one protocol per module; each registers itself in `contract.SINKS` when it is imported."""
