"""Connections and rows."""
