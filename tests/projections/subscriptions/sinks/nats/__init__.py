"""NATS."""
