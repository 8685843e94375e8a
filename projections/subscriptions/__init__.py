"""Deliveries: what the log comes to for subscribers, brought to their sinks at least once and in order."""
