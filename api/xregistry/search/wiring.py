"""Builds what writes the search index of a registry."""

from __future__ import annotations

from annals.api.registry.open_registry import Registry
from annals.projections.database.state_database import StateDatabase
from annals.projections.search.index_follower import IndexFollower
from annals.projections.search.index_writer import IndexWriter
from annals.projections.search.leadership import Leadership


def build_index_follower(url: str, registry: Registry) -> IndexFollower:
    """What keeps the index at the end of the log. url: of the database."""
    return IndexFollower(build_index_writer(url, registry), Leadership(url))


def build_index_writer(url: str, registry: Registry) -> IndexWriter:
    """What writes the index. url: of the database."""
    return IndexWriter(registry.readers, StateDatabase(url), registry.checker.check)
