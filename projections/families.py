"""Families of events: kinds of messages that the log comes to, one beside the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

from commands.proof import Interaction, LogRow
from projections.xregistry_events import PREFIX, Message, XRegistryEvents


class Family(Protocol):
    """One kind of events. name: as `config.families` has it; prefix: what its types begin with."""

    @property
    def name(self) -> str: ...
    @property
    def prefix(self) -> str: ...

    def messages(self, interaction: Interaction, rows: Iterable[LogRow]) -> Iterator[Message]:
        """What some events of an interaction come to, in log order."""


class XRegistry:
    """The events of the registry itself."""

    name: Final = "xregistry"
    prefix: Final = PREFIX

    def __init__(self, events: XRegistryEvents) -> None:
        self._events = events

    def messages(self, interaction: Interaction, rows: Iterable[LogRow]) -> Iterator[Message]:
        """See Family."""
        return self._events.messages(interaction, rows)


def told(
    families: Sequence[Family], interaction: Interaction, rows: Iterable[LogRow]
) -> Iterator[tuple[Family, Message]]:
    """The messages of all families made from each event, in the families' order; rows are taken one by one."""
    if len(families) == 1:
        [family] = families
        yield from ((family, message) for message in family.messages(interaction, rows))
        return
    for row in rows:
        for family in families:
            for message in family.messages(interaction, (row,)):
                yield family, message
