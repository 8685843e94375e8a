"""Filters and their comparisons."""
