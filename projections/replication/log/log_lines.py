"""Parses lines of `/-/log?documents` into whole interactions."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple, cast
from urllib.parse import parse_qs, urlsplit

from annals.commands.store.clock import parse_time
from annals.commands.store.mapper import EventMapper, UnreadableEvent
from annals.domain.registry.events import EntityEvent
from annals.domain.replication.foreign_checks import check_event, check_interaction
from annals.domain.replication.foreign_interaction import MAX_INTERACTION_BYTES, ForeignInteraction
from annals.domain.values.json_text import InvalidJson, loads_trusted
from annals.projections.replication.remote.remote_client import RemoteError

#: The media type of the lines.
NDJSON: Final = "application/x-ndjson"
_MAPPER: Final = EventMapper()
#: Errors of a line that no registry writes.
_UNREADABLE: Final = (InvalidJson, ValueError, KeyError, TypeError, AttributeError, UnreadableEvent)


class BrokenFeed(Exception):
    """Lines that do not form whole interactions, because some are missing or damaged."""


class FeedEvent(NamedTuple):
    """An event of a feed without its content. xregcorrelationid, last: id and last position of its interaction."""

    xregcorrelationid: str
    last: int
    stream: str


class LogLineParser:
    """Assembles lines into interactions. Drops an interaction that breaks off.

    max_bytes: the limit of an interaction, which is in memory until its last event arrives.
    """

    def __init__(self, max_bytes: int = MAX_INTERACTION_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._interaction: dict[str, Any] = {}
        self._events: list[EntityEvent] = []
        self._documents: dict[str, bytes] = {}

    @property
    def has_partial(self) -> bool:
        """Whether an interaction has begun and is not complete."""
        return bool(self._interaction or self._documents)

    def feed(self, line: bytes) -> ForeignInteraction | None:
        """The interaction that a line completes; None before its last line. Raises: BrokenFeed."""
        self._bytes = self._bytes + len(line) if self.has_partial else len(line)
        check_size(self._bytes, self._max_bytes, self._interaction)
        try:
            return self._add_line(loads_trusted(line))
        except _UNREADABLE as error:
            raise _unreadable_line(error) from error

    def _add_line(self, members: dict[str, Any]) -> ForeignInteraction | None:
        if "position" in members:
            return self._append_event(members)
        if "document" in members:
            self._documents |= _parse_document(members)
            return None
        if self._interaction:
            raise BrokenFeed(f"the interaction {self._interaction['xregcorrelationid']} ends before its last event")
        self._interaction, self._documents = members, {}
        return None

    def _append_event(self, members: dict[str, Any]) -> ForeignInteraction | None:
        position = members.pop("position")
        _check_continues(position, self._interaction, len(self._events))
        self._events.append(_parse_event(members))
        if position != self._interaction["last"]:
            return None
        events, documents, self._events, self._documents = self._events, self._documents, [], {}
        interaction_members, self._interaction = self._interaction, {}
        return foreign_interaction(
            interaction_members,
            interaction_members["registryurl"],
            bytes.fromhex(interaction_members["state"]),
            events,
            documents,
        )


def check_size(size: int, max_bytes: int, interaction_members: Mapping[str, Any]) -> None:
    """Raises: BrokenFeed for an interaction that is larger than the limit."""
    if size > max_bytes:
        limit = f"more than {max_bytes} bytes, the limit of ANNALS_LINK_MAX_INTERACTION"
        raise BrokenFeed(f"the interaction {interaction_members.get('xregcorrelationid', '')} has {limit}")


def parse_interactions(
    lines: Iterable[bytes | None], max_bytes: int = MAX_INTERACTION_BYTES
) -> Iterator[ForeignInteraction]:
    """The interactions of a feed, each once its last event has arrived. Skips empty lines.

    max_bytes: see `LogLineParser`.
    Raises: BrokenFeed, also if the lines end within an interaction.
    """
    parser = LogLineParser(max_bytes)
    for line in filter(None, lines):
        if (interaction := parser.feed(line)) is not None:
            yield interaction
    if parser.has_partial:
        raise BrokenFeed("the feed ends within an interaction")


def parse_feed_events(lines: Iterable[bytes | None]) -> Iterator[FeedEvent]:
    """The events of a feed without their contents. Raises: BrokenFeed."""
    id, last = "", cast(Any, None)
    for line in filter(None, lines):
        try:
            members = loads_trusted(line)
            if "position" in members:
                yield FeedEvent(id, int(last), str(members["stream"]))
            elif "document" not in members:
                id, last = str(members["xregcorrelationid"]), int(members["last"])
        except _UNREADABLE as error:
            raise _unreadable_line(error) from error


def parse_first_event(lines: Iterable[bytes | None]) -> tuple[EntityEvent, dict[str, bytes]]:
    """The first event of a feed, and the documents before it. Raises: BrokenFeed."""
    documents: dict[str, bytes] = {}
    for line in filter(None, lines):
        try:
            members = loads_trusted(line)
            if "document" in members:
                documents |= _parse_document(members)
            elif members.pop("position", None) is not None:
                event = _parse_event(members)
                check_event(event)
                return event, documents
        except _UNREADABLE as error:
            raise _unreadable_line(error) from error
    raise BrokenFeed("the feed has no event where there is one")


def parse_next_position(next_url: str) -> int:
    """The position after which the next page begins. next_url: as an answer names it. Raises: RemoteError."""
    (text, *_) = parse_qs(urlsplit(next_url).query).get("after", [""])
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise RemoteError("GET /-/log answers without a link to its next page, so nothing is known about its end")
    return int(text)


def _unreadable_line(error: Exception) -> BrokenFeed:
    return BrokenFeed(f"a line of the feed cannot be read: {' '.join(str(error).split())[:200]}")


def _check_continues(position: int, interaction_members: dict[str, Any], event_count: int) -> None:
    if position != interaction_members["first"] + event_count:
        raise BrokenFeed(
            f"the feed has position {position} where {interaction_members['first'] + event_count} comes next"
        )


def _parse_document(members: dict[str, Any]) -> dict[str, bytes]:
    content = b64decode(members["base64"], validate=True)
    if sha256(content).hexdigest() != members["document"]:
        raise BrokenFeed(f"the document {members['document']} is not what was sent for it")
    return {members["document"]: content}


def _parse_event(content: dict[str, Any]) -> EntityEvent:
    del content["stream"]
    return _MAPPER.event_of_content(content.pop("topic"), content.pop("revision"), content)


def foreign_interaction(
    members: dict[str, Any], registry_url: str, state: bytes, events: list[EntityEvent], documents: dict[str, bytes]
) -> ForeignInteraction:
    """An interaction from its parts. members: the members that all its formats have in common.

    Raises: ValueError for what no registry records.
    """
    interaction = ForeignInteraction(
        last=members["last"],
        xregcorrelationid=members["xregcorrelationid"],
        time=parse_time(members["time"]),
        caller=members["caller"],
        command=members["command"],
        registry_url=registry_url,
        state=state,
        events=tuple(events),
        documents=documents,
        authenticator=members.get("authenticator", ""),
        keyid=members.get("keyid", ""),
    )
    check_interaction(interaction)
    return interaction
