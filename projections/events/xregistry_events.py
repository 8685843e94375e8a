"""Derives xRegistry events from the log: CloudEvents of the types `io.xregistry.<entity>.<action>`.

Each is a function of one stored event and of its interaction. The feed, deliveries and a reader of the whole log
therefore get the same events, and none has to be stored.
Spec: xRegistry Events 1.0-rc4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final, NamedTuple

import orjson
from cloudevents.core.v1.event import CloudEvent

from annals.commands.store.database.registry_url import UNCONFIGURED_URL
from annals.commands.store.hashes import Interaction, LogRow, extract_image
from annals.commands.store.mapper import EventMapper
from annals.domain.registry.events import (
    TOPICS,
    EntityCreated,
    EntityDeleted,
    EntityEvent,
    EntityRefreshed,
    EntityUpdated,
)
from annals.domain.values import xid as xids

#: The prefix of every event type.
PREFIX: Final = "io.xregistry."

_JSON_TYPE: Final = "application/json"


class ChangeEvent(NamedTuple):
    """One event derived from the log, of the registry itself or of a legacy API.

    position: of the stored event; a family has at most two events for one position. source: without a trailing slash,
    so that source and subject together are a URL. time: as in the log. changed: None for an event without data.
    entity: the xid of the entity, "" if it is the subject.
    """

    position: int
    id: str
    type: str
    source: str
    subject: str
    time: str
    xregcorrelationid: str
    changed: tuple[str, ...] | None
    entity: str = ""

    @property
    def xid(self) -> str:
        """The xid of the entity; callers that may read the entity may read the event."""
        return self.entity or self.subject

    def attributes(self) -> dict[str, Any]:
        """The context attributes by name; all values are text."""
        members = {
            "specversion": "1.0",
            "id": self.id,
            "source": self.source,
            "type": self.type,
            "subject": self.subject,
            "time": self.time,
            "xregcorrelationid": self.xregcorrelationid,
        }
        return members if self.changed is None else members | {"datacontenttype": _JSON_TYPE}

    def cloudevent(self, **extensions: str) -> CloudEvent:
        """The event as the CloudEvents library represents it, for its bindings. extensions: additional attributes."""
        data = None if self.changed is None else {"changed": list(self.changed)}
        return CloudEvent(self.attributes() | extensions | {"time": _parse_instant(self.time)}, data)

    def json(self) -> bytes:
        """The event in structured mode, on one line without a line end; the library would write the same values."""
        members = self.attributes()
        if self.changed is not None:
            members["data"] = {"changed": self.changed}
        return orjson.dumps(members)


class _Instant(datetime):
    """A time that the library writes as the log does, with the same digits (EV-18, EV-23)."""

    text: str

    def isoformat(self, sep: str = "T", timespec: str = "auto") -> str:
        return self.text


def _parse_instant(text: str) -> _Instant:
    instant = _Instant.fromisoformat(text)
    instant.text = text
    return instant


class XRegistryEvents:
    """The projection to xRegistry events. It stores nothing, so there is nothing to rebuild."""

    name: Final = "xregistry_events"

    def __init__(self, lists_changes: bool = True) -> None:
        """lists_changes: whether events list the attributes that changed; without it no event has data (EV-49)."""
        self._lists_changes = lists_changes

    def messages(self, interaction: Interaction, rows: Iterable[LogRow]) -> Iterator[ChangeEvent]:
        """The events of an interaction, in the order of EV-77. rows: its stored events, in log order.

        Subscriptions and links have no events (SUB-112).
        Raises: UnknownTopic for an event that a newer program wrote.
        """
        source = interaction.registry_url.rstrip("/") or UNCONFIGURED_URL
        time, correlation = interaction.time, interaction.xregcorrelationid
        for row in rows:
            if xids.is_outside_tree(row.stream):
                continue
            index = row.position - interaction.first
            fields = _read_fields(row)
            for type, subject, changed in _describe_events(fields):
                # The type distinguishes the two events of one stored event, and those of other families (EV-15, EV-16).
                id = f"{correlation}.{index}.{type[3:]}"
                listed_changes = changed if self._lists_changes else None
                entity = "" if subject == fields.xid else fields.xid
                yield ChangeEvent(row.position, id, type, source, subject, time, correlation, listed_changes, entity)


class _StoredEventFields(NamedTuple):
    """The fields of a stored event that change events need; see EntityEvent."""

    topic: str
    xid: str
    changed: tuple[str, ...] = ()
    deprecated_changed: tuple[str, ...] | None = None
    is_forgotten: bool = False


class _EventDescription(NamedTuple):
    """The content of a change event; it does not depend on the interaction."""

    type: str
    subject: str
    changed: tuple[str, ...] | None = None


class _RootEventType(NamedTuple):
    """An event about the registry as a whole. required_change: the name that `changed` must contain for this event."""

    type: str
    subject: str
    lists_changes: bool
    required_change: str | None = None


#: By the updated stream, in the order of EV-77; the creation of these streams has no event (EV-03).
_ROOT_EVENT_TYPES: Final[dict[str, tuple[_RootEventType, ...]]] = {
    xids.REGISTRY: (_RootEventType(PREFIX + "registry.updated", "/", lists_changes=True),),
    xids.MODEL: (
        _RootEventType(PREFIX + "model.updated", "/model", lists_changes=False, required_change="model"),
        _RootEventType(
            PREFIX + "modelsource.updated", "/modelsource", lists_changes=False, required_change="modelsource"
        ),
    ),
    xids.CAPABILITIES: (_RootEventType(PREFIX + "capabilities.updated", "/capabilities", lists_changes=True),),
}
#: By the number of slashes in an xid.
_ENTITY_NAMES: Final = {2: "group", 4: "resource", 6: "version"}
_ACTIONS: Final = {EntityCreated.TOPIC: "created", EntityUpdated.TOPIC: "updated", EntityDeleted.TOPIC: "deleted"}
_EVENT_TYPES: Final = {
    (topic, slashes): f"{PREFIX}{entity}.{action}"
    for topic, action in _ACTIONS.items()
    for slashes, entity in _ENTITY_NAMES.items()
}
_DEPRECATION_TYPES: Final = {slashes: f"{PREFIX}{entity}.deprecation" for slashes, entity in _ENTITY_NAMES.items()}


def _describe_events(fields: _StoredEventFields) -> list[_EventDescription]:
    """The change events of one stored event; none for a refresh (EV-47) or for members that only façades had."""
    if fields.topic == EntityRefreshed.TOPIC or fields.is_forgotten:
        return []
    if fields.xid in _ROOT_EVENT_TYPES:
        return _describe_root_events(fields)
    slashes = fields.xid.count("/")
    changed = fields.changed if fields.topic == EntityUpdated.TOPIC else None
    descriptions = [_EventDescription(_EVENT_TYPES[fields.topic, slashes], fields.xid, changed)]
    if fields.deprecated_changed is not None:
        descriptions.append(_EventDescription(_DEPRECATION_TYPES[slashes], fields.xid, fields.deprecated_changed))
    return descriptions


def _describe_root_events(fields: _StoredEventFields) -> list[_EventDescription]:
    if fields.topic != EntityUpdated.TOPIC:
        return []
    return [
        _EventDescription(root_type.type, root_type.subject, fields.changed if root_type.lists_changes else None)
        for root_type in _ROOT_EVENT_TYPES[fields.xid]
        if root_type.required_change is None or root_type.required_change in fields.changed
    ]


# --- reading ---------------------------------------------------------------------------------------------------------
# The after-image is most of a stored event, but change events show only its xid. If it is not parsed, a small event is
# read in a third of the time, and a large one as fast as a small one.

_MAPPER: Final = EventMapper()
_WITHOUT_CHANGED: Final = frozenset({EntityRefreshed.TOPIC, EntityDeleted.TOPIC})
_XID_START: Final = len(b'{"xid":"')
#: The reason of deletions of Versions that only the façades still had; they left the registry earlier (LEG-707).
_FORGOTTEN_REASON: Final = b',"reason":"forgotten",'


def _read_fields(row: LogRow) -> _StoredEventFields:
    """The fields of a stored event. Raises: UnreadableEvent."""
    if row.topic in TOPICS:
        try:
            return _read_without_image(row)
        except (LookupError, TypeError, ValueError):
            pass  # reading the whole event below reports what is wrong
    return _fields_of(_MAPPER.event_of_row(row))


def _read_without_image(row: LogRow) -> _StoredEventFields:
    """The fields from the first and last bytes of an event of the current layout."""
    state = row.state
    xid = state[_XID_START : state.index(b'"', _XID_START)].decode()  # no character of an xid is escaped in JSON
    if row.topic in _WITHOUT_CHANGED:
        return _StoredEventFields(
            row.topic, xid, is_forgotten=row.topic == EntityDeleted.TOPIC and _FORGOTTEN_REASON in state
        )
    trailing_members = orjson.loads(b"{" + state[len(extract_image(state)) :])
    deprecated = trailing_members.get("deprecated_changed")
    return _StoredEventFields(
        row.topic, xid, tuple(trailing_members["changed"]), None if deprecated is None else tuple(deprecated)
    )


def _fields_of(event: EntityEvent) -> _StoredEventFields:
    is_forgotten = isinstance(event, EntityDeleted) and event.reason == "forgotten"
    return _StoredEventFields(event.TOPIC, event.xid, event.changed, event.deprecated_changed, is_forgotten)
