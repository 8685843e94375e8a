"""Assembles whole interactions from the records of a published log."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any, Final, NamedTuple

from annals.commands.store.mapper import UnreadableEvent
from annals.domain.registry.events import EntityEvent
from annals.domain.replication.foreign_interaction import MAX_INTERACTION_BYTES, ForeignInteraction
from annals.domain.values.json_text import InvalidJson, loads_trusted
from annals.projections.kafka.log_topic import DOCUMENT, SCHEMA
from annals.projections.log.table_rows import KNOWN_VERSIONS, event_of
from annals.projections.replication.log.log_lines import BrokenFeed, check_size, foreign_interaction

_KNOWN_SCHEMAS: Final = [str(version).encode() for version in KNOWN_VERSIONS]


class LogTopicRecord(NamedTuple):
    """A record. value: JSON of one log row in its table form."""

    value: bytes
    headers: dict[str, bytes]


class InteractionAssembler:
    """Assembles interactions from rows, across calls.

    max_bytes: the limit of an interaction, which is in memory until its last event arrives.
    """

    def __init__(self, max_bytes: int = MAX_INTERACTION_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._events: list[EntityEvent] = []
        self._documents: dict[str, bytes] = {}

    @property
    def has_partial(self) -> bool:
        """Whether an interaction has begun and is not complete."""
        return bool(self._events)

    def assemble(self, rows: Iterable[LogTopicRecord]) -> Iterator[ForeignInteraction]:
        """The interactions that end within these rows. The rows continue those of earlier calls.

        Raises: BrokenFeed.
        """
        for row in rows:
            try:
                members = self._parse_row(row)
                if members["position"] == members["last"]:
                    yield foreign_interaction(
                        members, members["registry_url"], _state_hash(members), self._events, self._documents
                    )
                    self._bytes, self._events, self._documents = 0, [], {}
            except (InvalidJson, ValueError, KeyError, TypeError, AttributeError, UnreadableEvent) as error:
                raise BrokenFeed(f"a record cannot be read: {' '.join(str(error).split())[:200]}") from error

    def _parse_row(self, row: LogTopicRecord) -> dict[str, Any]:
        if (version := row.headers.get(SCHEMA)) not in _KNOWN_SCHEMAS:
            raise BrokenFeed(
                f"a record has columns of schema {version!r}, but this program knows those of {_KNOWN_SCHEMAS}"
            )
        members: dict[str, Any] = loads_trusted(row.value)
        if members["position"] != members["first"] + len(self._events):
            raise BrokenFeed(f"position {members['position']} does not begin an interaction")
        content = row.headers.get(DOCUMENT)
        self._bytes += len(row.value) + len(content or b"")
        check_size(self._bytes, self._max_bytes, members)
        self._events.append(event_of(members["topic"], members["revision"], members["state"]))
        if content is not None:
            self._documents[sha256(content).hexdigest()] = content
        return members


def _state_hash(members: dict[str, Any]) -> bytes:
    return b64decode(members["statehash"], validate=True)
