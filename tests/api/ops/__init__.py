"""Health, metrics and damage."""
