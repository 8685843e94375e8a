"""Deliverers over a real store."""
