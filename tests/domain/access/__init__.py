"""Roles and what they may do."""
