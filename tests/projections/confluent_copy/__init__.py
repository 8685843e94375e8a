"""Copies between schema registries: orders, and records of topics. The copies themselves are in tests/api/cli."""
