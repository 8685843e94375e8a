"""Parses lines of `/-/log?documents` into whole interactions."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

from commands.store.clock import parse_time
from commands.store.mapper import EventMapper, UnreadableEvent
from domain.registry.events import EntityEvent
from domain.replication.foreign_interaction import ForeignInteraction
from domain.values.json_text import InvalidJson, loads_trusted

_MAPPER = EventMapper()


class BrokenFeed(Exception):
    """Lines that do not form whole interactions, because some are missing or damaged."""


class LogLineParser:
    """Assembles lines into interactions. Drops an interaction that breaks off."""

    def __init__(self) -> None:
        self._interaction: dict[str, Any] = {}
        self._events: list[EntityEvent] = []
        self._documents: dict[str, bytes] = {}

    @property
    def has_partial(self) -> bool:
        """Whether an interaction has begun and is not complete."""
        return bool(self._events or self._documents)

    def feed(self, line: bytes) -> ForeignInteraction | None:
        """The interaction that a line completes; None before its last line. Raises: BrokenFeed."""
        try:
            return self._add_event(loads_trusted(line))
        except (InvalidJson, ValueError, KeyError, TypeError, AttributeError, UnreadableEvent) as error:
            raise BrokenFeed(f"a line of the feed cannot be read: {' '.join(str(error).split())[:200]}") from error

    def _add_event(self, found: dict[str, Any]) -> ForeignInteraction | None:
        if "position" in found:
            return self._event(found)
        if "document" in found:
            self._documents |= _document(found)
            return None
        if self._events:
            raise BrokenFeed(f"the interaction {self._interaction['xregcorrelationid']} ends before its last event")
        self._interaction, self._documents = found, {}
        return None

    def _event(self, found: dict[str, Any]) -> ForeignInteraction | None:
        position = found.pop("position")
        _check_next(position, self._interaction, len(self._events))
        self._events.append(_event(found))
        if position != self._interaction["last"]:
            return None
        events, documents, self._events, self._documents = self._events, self._documents, [], {}
        facts = self._interaction
        return foreign_interaction(facts, facts["registryurl"], bytes.fromhex(facts["state"]), events, documents)


def parse_interactions(lines: Iterable[bytes | None]) -> Iterator[ForeignInteraction]:
    """The interactions of a feed, each once its last event has arrived. Skips empty lines.

    Raises: BrokenFeed.
    """
    parser = LogLineParser()
    for line in filter(None, lines):
        if (found := parser.feed(line)) is not None:
            yield found


def parse_first_event(lines: Iterable[bytes | None]) -> tuple[EntityEvent, dict[str, bytes]]:
    """The first event of a feed, and the documents before it. Raises: BrokenFeed."""
    documents: dict[str, bytes] = {}
    for line in filter(None, lines):
        try:
            found = loads_trusted(line)
            if "document" in found:
                documents |= _document(found)
            elif found.pop("position", None) is not None:
                return _event(found), documents
        except (InvalidJson, ValueError, KeyError, TypeError, AttributeError, UnreadableEvent) as error:
            raise BrokenFeed(f"a line of the feed cannot be read: {' '.join(str(error).split())[:200]}") from error
    raise BrokenFeed("the feed has no event where there is one")


def _check_next(position: int, facts: dict[str, Any], before: int) -> None:
    if position != facts["first"] + before:
        raise BrokenFeed(f"the feed has position {position} where {facts['first'] + before} comes next")


def _document(found: dict[str, Any]) -> dict[str, bytes]:
    content = b64decode(found["base64"], validate=True)
    if sha256(content).hexdigest() != found["document"]:
        raise BrokenFeed(f"the document {found['document']} is not what was sent for it")
    return {found["document"]: content}


def _event(content: dict[str, Any]) -> EntityEvent:
    del content["stream"]
    return _MAPPER.event_of_content(content.pop("topic"), content.pop("revision"), content)


def foreign_interaction(
    facts: dict[str, Any], registry_url: str, state: bytes, events: list[EntityEvent], documents: dict[str, bytes]
) -> ForeignInteraction:
    """An interaction from its parts. facts: the members that all its formats have in common."""
    return ForeignInteraction(
        last=facts["last"],
        xregcorrelationid=facts["xregcorrelationid"],
        time=parse_time(facts["time"]),
        caller=facts["caller"],
        command=facts["command"],
        registry_url=registry_url,
        state=state,
        events=tuple(events),
        documents=documents,
    )
