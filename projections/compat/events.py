"""The change events of the older APIs: CloudEvents that say that an object was `updated` or `deleted`, and no more.

Each is a function of one stored event and of the facts of its interaction, whichever API made the change (LEG-1001). As
the log has one event of an object for an interaction, there is one of these at most (LEG-1003).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import orjson

from commands.store.hashes import Interaction, LogRow
from commands.store.mapper import EventMapper
from commands.store.registry_url import UNCONFIGURED_URL
from domain.compat.legacy_apis import LegacyApi, legacy_api_of, version_number
from domain.compat.uris import entity_path
from domain.registry.events import TOPICS, EntityDeleted, EntityEvent, EntityRefreshed
from domain.values.json_text import loads
from projections.events.xregistry_events import ChangeEvent

UPDATED: Final = "updated.v1"
DELETED: Final = "deleted.v1"

_MAPPER: Final = EventMapper()
#: Paths that are kept: each write is about a Group, a definition and a Version below it.
_KNOWN: Final = 10_000
#: Slashes of a Version's xid.
_VERSION: Final = 6


class CompatEvents:
    """The projection of one older API. It keeps nothing, so there is nothing to rebuild."""

    def __init__(self, family: LegacyApi) -> None:
        self.name: Final = family.name
        self.prefix: Final = f"{family.events}."
        self._family = family
        self._below = f"/{family.groups}/"

    def messages(self, interaction: Interaction, rows: Iterable[LogRow]) -> Iterator[ChangeEvent]:
        """What an interaction comes to, in log order. rows: its stored events, or some of them.

        Raises: UnknownTopic for an event that a newer program wrote.
        """
        source = (interaction.registry_url.rstrip("/") or UNCONFIGURED_URL) + self._family.base
        correlation = interaction.xregcorrelationid
        for row in rows:
            if not row.stream.startswith(self._below) or (news := _describe_event(self._family, row)) is None:
                continue
            type = self.prefix + news.action
            id = f"{correlation}.{row.position - interaction.first}.{type[3:]}"
            time = news.time or interaction.time
            yield ChangeEvent(row.position, id, type, source, news.subject, time, correlation, None, news.xid)


class _ObjectEventDescription(NamedTuple):
    """What is told of a stored event. time: None for that of the interaction."""

    action: str
    subject: str
    time: str | None
    xid: str


class _StoredObjectFields(NamedTuple):
    """What news need to know of a stored event; see EntityEvent. reason: of a deletion, else ""."""

    xid: str
    attributes: Mapping[str, Any]
    private: Mapping[str, Any]
    reason: str


def _describe_event(family: LegacyApi, row: LogRow) -> _ObjectEventDescription | None:
    """What is told of one stored event of a Group or below.

    Nothing of a refresh, of a pruning, after which all is there as before (LEG-707), and of what the API does not show.
    """
    if row.topic == EntityRefreshed.TOPIC:
        return None
    fact = _read_fields(row)
    if fact.reason == "pruned" or legacy_api_of(fact.xid) is not family:
        return None
    subject = _subject(fact)
    if subject is None:
        return None
    if fact.reason:
        return _ObjectEventDescription(DELETED, subject, None, fact.xid)
    return _ObjectEventDescription(UPDATED, subject, _TIMES[fact.xid.count("/")](fact), fact.xid)


def _subject(fact: _StoredObjectFields) -> str | None:
    """The path of an object below the base of its API (LEG-1005); None for a Version without a number."""
    if fact.xid.count("/") < _VERSION:
        return _path(fact.xid)
    definition, _, versionid = fact.xid.rsplit("/", 2)
    # What is left of a deleted Version says its number by itself.
    number = fact.private.get("number") or version_number(versionid, fact.private)
    return f"{_path(definition)}/versions/{number}" if number else None


_path: Final = lru_cache(_KNOWN)(entity_path)


def _time_of_group(fact: _StoredObjectFields) -> str:
    return str(fact.attributes["modifiedat"])


def _time_of_definition(fact: _StoredObjectFields) -> str:
    """Of a pointer its own, as it shows those of its target, which others may change."""
    own = fact.private["own"] if "xref" in fact.attributes["meta"] else fact.attributes["meta"]
    return str(own["modifiedat"])


def _time_of_version(fact: _StoredObjectFields) -> str:
    """When it came to be, also where it has changed since: Versions have no other time there."""
    return str(fact.attributes["createdat"])


#: By the number of slashes in an xid.
_TIMES: Final = {2: _time_of_group, 4: _time_of_definition, 6: _time_of_version}


def _read_fields(row: LogRow) -> _StoredObjectFields:
    """The fact in a stored event; one of an older layout is brought into today's."""
    if row.topic not in TOPICS:
        return _fields_of(_MAPPER.of_row(row))
    state = _read(row.state)
    return _StoredObjectFields(state["xid"], state["attributes"], state["private"], state.get("reason", ""))


def _fields_of(event: EntityEvent) -> _StoredObjectFields:
    reason = event.reason if isinstance(event, EntityDeleted) else ""
    return _StoredObjectFields(event.xid, event.attributes, event.private, reason)


def _read(state: bytes) -> Any:
    # No number that is rounded here is told to anybody, so a look at whether it was is spared.
    try:
        return orjson.loads(state)
    except orjson.JSONDecodeError:
        return loads(state)
