"""Deliverers on a real store."""
