"""The xRegistry events of the log of a store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from annals.projections.database.connections import connect
from annals.projections.events.xregistry_events import ChangeEvent, XRegistryEvents
from annals.projections.log.reader import Log


def event_messages(url: str, after: int = 0) -> list[ChangeEvent]:
    """The messages of all interactions after a position, read from the store."""
    with closing(connect(url)) as reader:
        return list(messages(Log(reader), after, XRegistryEvents()))


def last_position(url: str) -> int:
    """The position of the last event in a store."""
    with closing(connect(url)) as reader:
        return Log(reader).head().last


def messages(log: Log, after: int, projection: XRegistryEvents) -> Iterator[ChangeEvent]:
    """The messages of all interactions after a position, one interaction at a time."""
    for interaction in log.interactions(after, 1_000_000):
        yield from projection.messages(interaction, log.events(interaction.first, interaction.last))
