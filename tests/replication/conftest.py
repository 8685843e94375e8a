"""Stores for registries that copy from one another."""

from tests.stores import postgres_server, postgres_url, sqlite_url, store_url

__all__ = ["postgres_server", "postgres_url", "sqlite_url", "store_url"]
