"""JSON Structure."""
