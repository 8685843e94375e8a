"""Copies between schema registries: orders, and records of topics. Tests of whole copies are in tests/api/cli."""
