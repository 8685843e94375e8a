"""Records of the topics: what all of them share.

The records of a topic are numbered 1, 2, 3 without gaps, in the order of the log. A reader of several partitions
restores that order from the numbers alone: the next record has the next number.
Spec: EV-77, EV-78, EV-79.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from annals.commands.store.hashes import Interaction, LogRow
from annals.domain.values import xid as xids
from annals.projections.log.reader import Log

#: Headers of every record: the number in its topic, the position of the stored event in the log, the positions of its
#: interaction's first and last event, its correlation id.
NUMBER: Final = "annals_number"
POSITION: Final = "annals_position"
FIRST: Final = "annals_first"
LAST: Final = "annals_last"
INTERACTION: Final = "annals_interaction"

#: How keys are built that name the Group; see `partition_key`.
GROUP_KEYS: Final = "group"

Headers = list[tuple[str, bytes]]


class WindowPart(NamedTuple):
    """An interaction, and those of its events that a window contains."""

    interaction: Interaction
    rows: Sequence[LogRow]


class RecordContent(NamedTuple):
    """The content of a record, before it has a number. value: None for a tombstone."""

    interaction: Interaction
    position: int
    key: bytes
    value: bytes | None
    headers: Headers


class TopicContent(Protocol):
    """The content of one topic.

    name: the part of the topic's name after the prefix. key_format: how keys are built; with another one, the records
    of an entity would be in another partition than before.
    """

    @property
    def name(self) -> str: ...
    @property
    def key_format(self) -> str: ...

    def records(self, parts: Sequence[WindowPart], log: Log) -> Iterator[RecordContent]:
        """The records of a part of the log, in its order."""


class PublishedRecord(NamedTuple):
    """A record to publish. topic: the part of its name after the prefix. value: None for a tombstone."""

    topic: str
    partition: int
    position: int
    key: bytes
    value: bytes | None
    headers: Headers

    @property
    def size(self) -> int:
        """Its approximate size in bytes."""
        return len(self.key) + len(self.value or b"") + sum(len(name) + len(value) for name, value in self.headers)


def position_headers(content: RecordContent, number: int) -> Headers:
    """The headers that every record has. number: of the record in its topic."""
    interaction = content.interaction
    numbers = {NUMBER: number, POSITION: content.position, FIRST: interaction.first, LAST: interaction.last}
    headers = [(name, encode_number(value)) for name, value in numbers.items()]
    return [*headers, (INTERACTION, interaction.xregcorrelationid.encode())]


def partition_key(stream: str) -> bytes:
    """The key of a stream: the folded xid of its Group, or `/` outside any Group (EV-78).

    Folded, because a Group that is deleted and re-created in another case continues its old streams.
    """
    parts = xids.segments(stream)
    is_in_group = len(parts) > 1 and not xids.is_outside_tree(stream)
    return (xids.join(*parts[:2]) if is_in_group else xids.REGISTRY).encode()


def encode_number(number: int) -> bytes:
    """A number as the text that headers contain."""
    return str(number).encode()


class RecordPosition(NamedTuple):
    """A record's number in its topic, its position in the log, and the id of its interaction, from its headers."""

    number: int
    position: int
    interaction: str


def record_position(headers: Iterable[tuple[str, bytes]]) -> RecordPosition | None:
    """The position of a record; None if it is not of a registry."""
    values_by_name = dict(headers)
    try:
        return RecordPosition(
            int(values_by_name[NUMBER]), int(values_by_name[POSITION]), values_by_name[INTERACTION].decode()
        )
    except (KeyError, ValueError):
        return None
