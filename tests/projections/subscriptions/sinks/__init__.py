"""Sinks, a folder for each protocol, with real brokers and receivers."""
