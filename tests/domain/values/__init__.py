"""Dot paths and JSON text."""
