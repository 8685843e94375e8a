"""Registries for tests: in memory, in process, served, and in pairs."""
