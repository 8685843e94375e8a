"""The change events of the legacy APIs: CloudEvents that only say that an object was `updated` or `deleted`.

Each is a function of one stored event and of its interaction, whichever API made the change (LEG-1001). The log has one
event of an object for each interaction, so there is at most one change event (LEG-1003).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import orjson

from annals.commands.store.hashes import Interaction, LogRow
from annals.commands.store.mapper import EventMapper
from annals.commands.store.registry_url import UNCONFIGURED_URL
from annals.domain.compat.legacy_apis import LegacyApi, legacy_api_of, version_number
from annals.domain.compat.uris import entity_path
from annals.domain.confluent.facts import CONFLUENT
from annals.domain.registry.events import TOPICS, EntityDeleted, EntityEvent, EntityRefreshed
from annals.domain.values.json_text import loads
from annals.projections.events.xregistry_events import ChangeEvent

UPDATED: Final = "updated.v1"
DELETED: Final = "deleted.v1"

_MAPPER: Final = EventMapper()
#: The number of cached paths: each write concerns a Group, a definition and a Version below it.
_PATH_CACHE_SIZE: Final = 10_000
#: The number of slashes in a Version's xid.
_VERSION_DEPTH: Final = 6


class CompatEvents:
    """The projection of one legacy API. It stores nothing, so there is nothing to rebuild."""

    def __init__(self, family: LegacyApi) -> None:
        self.name: Final = family.name
        self.prefix: Final = f"{family.events}."
        self._family = family
        self._group_path = f"/{family.groups}/"

    def messages(self, interaction: Interaction, rows: Iterable[LogRow]) -> Iterator[ChangeEvent]:
        """The change events of an interaction, in log order. rows: its stored events, or some of them.

        Raises: UnknownTopic for an event that a newer program wrote.
        """
        source = (interaction.registry_url.rstrip("/") or UNCONFIGURED_URL) + self._family.base
        correlation = interaction.xregcorrelationid
        for row in rows:
            if (
                not row.stream.startswith(self._group_path)
                or (description := _describe_event(self._family, row)) is None
            ):
                continue
            type = self.prefix + description.action
            id = f"{correlation}.{row.position - interaction.first}.{type[3:]}"
            time = description.time or interaction.time
            yield ChangeEvent(
                row.position, id, type, source, description.subject, time, correlation, None, description.xid
            )


class _ObjectEventDescription(NamedTuple):
    """The content of a change event. time: None for that of the interaction."""

    action: str
    subject: str
    time: str | None
    xid: str


class _StoredObjectFields(NamedTuple):
    """The fields of a stored event that a change event needs; see EntityEvent. reason: of a deletion, else ""."""

    xid: str
    attributes: Mapping[str, Any]
    private: Mapping[str, Any]
    reason: str


def _describe_event(family: LegacyApi, row: LogRow) -> _ObjectEventDescription | None:
    """The change event for one stored event of a Group or an entity below it; None if there is none.

    There is none for a refresh, for a pruning, which changes nothing that the API shows (LEG-707), for a version that
    Confluent's API deletes for good, because it was deleted before, and for entities that the API does not show.
    """
    if row.topic == EntityRefreshed.TOPIC:
        return None
    fields = _read_fields(row)
    if fields.reason == "pruned" or (fields.reason == "forgotten" and CONFLUENT in fields.private):
        return None
    if legacy_api_of(fields.xid) is not family:
        return None
    subject = _subject_path(fields)
    if subject is None:
        return None
    if fields.reason:
        return _ObjectEventDescription(DELETED, subject, None, fields.xid)
    return _ObjectEventDescription(UPDATED, subject, _TIMES[fields.xid.count("/")](fields), fields.xid)


def _subject_path(fields: _StoredObjectFields) -> str | None:
    """The path of an object below the base of its API (LEG-1005); None for a Version without a number."""
    if fields.xid.count("/") < _VERSION_DEPTH:
        return _cached_path(fields.xid)
    definition, _, versionid = fields.xid.rsplit("/", 2)
    # The last event of a deleted Version has the number itself.
    number = fields.private.get("number") or version_number(versionid, fields.private)
    return f"{_cached_path(definition)}/versions/{number}" if number else None


_cached_path: Final = lru_cache(_PATH_CACHE_SIZE)(entity_path)


def _time_of_group(fields: _StoredObjectFields) -> str:
    return str(fields.attributes["modifiedat"])


def _time_of_definition(fields: _StoredObjectFields) -> str:
    """The time of the Resource itself; a Resource with an xref shows its target's times, which others may change."""
    own_members = fields.private["own"] if "xref" in fields.attributes["meta"] else fields.attributes["meta"]
    return str(own_members["modifiedat"])


def _time_of_version(fields: _StoredObjectFields) -> str:
    """The creation time, also after a change: Versions have no other time in the legacy APIs."""
    return str(fields.attributes["createdat"])


#: By the number of slashes in an xid.
_TIMES: Final = {2: _time_of_group, 4: _time_of_definition, 6: _time_of_version}


def _read_fields(row: LogRow) -> _StoredObjectFields:
    """The fields of a stored event; an event of an older layout is converted."""
    if row.topic not in TOPICS:
        return _fields_of(_MAPPER.event_of_row(row))
    state = _load_state(row.state)
    return _StoredObjectFields(state["xid"], state["attributes"], state["private"], state.get("reason", ""))


def _fields_of(event: EntityEvent) -> _StoredObjectFields:
    reason = event.reason if isinstance(event, EntityDeleted) else ""
    return _StoredObjectFields(event.xid, event.attributes, event.private, reason)


def _load_state(state: bytes) -> Any:
    # No event shows a number that orjson rounds, so the slower check for rounding is skipped.
    try:
        return orjson.loads(state)
    except orjson.JSONDecodeError:
        return loads(state)
