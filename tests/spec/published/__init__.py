"""Schemas evolved by what the formats' own projects publish."""
