"""The read model: its rows, queries, plans, rebuilds and verification."""
