"""Filters and how they compare."""
