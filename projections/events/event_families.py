"""Event families: the different kinds of change events that the same log yields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

from annals.commands.store.hashes import Interaction, LogRow
from annals.projections.events.xregistry_events import PREFIX, ChangeEvent, XRegistryEvents


class EventFamily(Protocol):
    """One kind of events. name: as in `config.families`; prefix: the start of its event types."""

    @property
    def name(self) -> str: ...
    @property
    def prefix(self) -> str: ...

    def messages(self, interaction: Interaction, rows: Iterable[LogRow]) -> Iterator[ChangeEvent]:
        """The change events of some stored events of an interaction, in log order."""


class XRegistryFamily:
    """The events of the registry itself."""

    name: Final = "xregistry"
    prefix: Final = PREFIX

    def __init__(self, events: XRegistryEvents) -> None:
        self._events = events

    def messages(self, interaction: Interaction, rows: Iterable[LogRow]) -> Iterator[ChangeEvent]:
        """See EventFamily."""
        return self._events.messages(interaction, rows)


def published_events(
    families: Sequence[EventFamily], interaction: Interaction, rows: Iterable[LogRow]
) -> Iterator[tuple[EventFamily, ChangeEvent]]:
    """The change events of all families for each stored event, in the families' order; reads rows one by one."""
    if len(families) == 1:
        [family] = families
        yield from ((family, message) for message in family.messages(interaction, rows))
        return
    for row in rows:
        for family in families:
            for message in family.messages(interaction, (row,)):
                yield family, message
