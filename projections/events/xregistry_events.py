"""The xRegistry events that the log comes to: CloudEvents of the types `io.xregistry.<entity>.<action>`.

Each is a function of one stored event and of the facts of its interaction, so the feed, deliveries and a reader of the
whole log get the same ones, and nothing about them has to be kept.
Spec: xRegistry Events 1.0-rc4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final, NamedTuple

import orjson
from cloudevents.core.v1.event import CloudEvent

from commands.store.hashes import Interaction, LogRow, image_in
from commands.store.mapper import EventMapper
from commands.store.registry_url import UNCONFIGURED_URL
from domain.registry.events import TOPICS, EntityCreated, EntityDeleted, EntityEvent, EntityRefreshed, EntityUpdated
from domain.values import xid as xids

#: Before every type.
PREFIX: Final = "io.xregistry."

_JSON: Final = "application/json"


class ChangeEvent(NamedTuple):
    """One event that the log comes to, of the registry itself or of an older API.

    position: of the stored event that it tells of; of one position there are two of a family at most. source: without a
    slash at its end, so that the subject behind it makes a URL. time: as the log has it. changed: None for an event
    without data. entity: the xid of what it tells of, "" where that is the subject.
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
        """Of what it tells of: who may read that may have the event."""
        return self.entity or self.subject

    def attributes(self) -> dict[str, Any]:
        """The context attributes by name, all of them text."""
        found = {
            "specversion": "1.0",
            "id": self.id,
            "source": self.source,
            "type": self.type,
            "subject": self.subject,
            "time": self.time,
            "xregcorrelationid": self.xregcorrelationid,
        }
        return found if self.changed is None else found | {"datacontenttype": _JSON}

    def cloudevent(self, **further: str) -> CloudEvent:
        """The event as the CloudEvents library has it, for its bindings. further: attributes beyond its own."""
        data = None if self.changed is None else {"changed": list(self.changed)}
        return CloudEvent(self.attributes() | further | {"time": _instant(self.time)}, data)

    def json(self) -> bytes:
        """The event in structured mode, on one line without its end; the library would write the same values."""
        whole = self.attributes()
        if self.changed is not None:
            whole["data"] = {"changed": self.changed}
        return orjson.dumps(whole)


class _Instant(datetime):
    """A time that the library writes as the log does, whatever digits it has (EV-18, EV-23)."""

    text: str

    def isoformat(self, sep: str = "T", timespec: str = "auto") -> str:
        return self.text


def _instant(text: str) -> _Instant:
    found = _Instant.fromisoformat(text)
    found.text = text
    return found


class XRegistryEvents:
    """The projection. It keeps nothing, so there is nothing to rebuild."""

    name: Final = "xregistry_events"

    def __init__(self, changed: bool = True) -> None:
        """changed: whether events say which attributes changed; without it no event has data (EV-49)."""
        self._changed = changed

    def messages(self, interaction: Interaction, rows: Iterable[LogRow]) -> Iterator[ChangeEvent]:
        """What an interaction comes to, in the order of EV-77. rows: its stored events, in log order.

        Nothing is told of subscriptions and links (SUB-112).
        Raises: UnknownTopic for an event that a newer program wrote.
        """
        source = interaction.registry_url.rstrip("/") or UNCONFIGURED_URL
        time, correlation = interaction.time, interaction.xregcorrelationid
        for row in rows:
            if xids.is_outside_tree(row.stream):
                continue
            index = row.position - interaction.first
            for type, subject, changed in _describe_events(_read_fields(row)):
                # The type tells apart the two messages of one event, and those of other families (EV-15, EV-16).
                id = f"{correlation}.{index}.{type[3:]}"
                shown = changed if self._changed else None
                yield ChangeEvent(row.position, id, type, source, subject, time, correlation, shown)


class _StoredEventFields(NamedTuple):
    """What messages need to know of a stored event; see EntityEvent."""

    topic: str
    xid: str
    changed: tuple[str, ...] = ()
    deprecated_changed: tuple[str, ...] | None = None
    forgotten: bool = False


class _EventDescription(NamedTuple):
    """What is told of an event, whoever recorded it."""

    type: str
    subject: str
    changed: tuple[str, ...] | None = None


class _RootEventType(NamedTuple):
    """An event about the registry as a whole. when: the name in `changed` without which it is not told."""

    type: str
    subject: str
    lists: bool
    when: str | None = None


#: By the stream that is updated, in the order of EV-77; that these streams come into being is told to nobody (EV-03).
_ROOT: Final[dict[str, tuple[_RootEventType, ...]]] = {
    xids.REGISTRY: (_RootEventType(PREFIX + "registry.updated", "/", lists=True),),
    xids.MODEL: (
        _RootEventType(PREFIX + "model.updated", "/model", lists=False, when="model"),
        _RootEventType(PREFIX + "modelsource.updated", "/modelsource", lists=False, when="modelsource"),
    ),
    xids.CAPABILITIES: (_RootEventType(PREFIX + "capabilities.updated", "/capabilities", lists=True),),
}
#: By the number of slashes in an xid.
_ENTITIES: Final = {2: "group", 4: "resource", 6: "version"}
_ACTIONS: Final = {EntityCreated.TOPIC: "created", EntityUpdated.TOPIC: "updated", EntityDeleted.TOPIC: "deleted"}
_TYPES: Final = {
    (topic, slashes): f"{PREFIX}{entity}.{action}"
    for topic, action in _ACTIONS.items()
    for slashes, entity in _ENTITIES.items()
}
_DEPRECATIONS: Final = {slashes: f"{PREFIX}{entity}.deprecation" for slashes, entity in _ENTITIES.items()}


def _describe_events(fact: _StoredEventFields) -> list[_EventDescription]:
    """What is told of one stored event; nothing of a refresh (EV-47), nor of what only façades had."""
    if fact.topic == EntityRefreshed.TOPIC or fact.forgotten:
        return []
    if fact.xid in _ROOT:
        return _describe_root_events(fact)
    slashes = fact.xid.count("/")
    changed = fact.changed if fact.topic == EntityUpdated.TOPIC else None
    told = [_EventDescription(_TYPES[fact.topic, slashes], fact.xid, changed)]
    if fact.deprecated_changed is not None:
        told.append(_EventDescription(_DEPRECATIONS[slashes], fact.xid, fact.deprecated_changed))
    return told


def _describe_root_events(fact: _StoredEventFields) -> list[_EventDescription]:
    if fact.topic != EntityUpdated.TOPIC:
        return []
    return [
        _EventDescription(kind.type, kind.subject, fact.changed if kind.lists else None)
        for kind in _ROOT[fact.xid]
        if kind.when is None or kind.when in fact.changed
    ]


# --- reading ---------------------------------------------------------------------------------------------------------
# An after-image is most of a stored event, and nothing of it but the xid is told. Left unread, a small event is read
# in a third of the time and a large one as fast as a small one.

_MAPPER: Final = EventMapper()
_WITHOUT_CHANGED: Final = frozenset({EntityRefreshed.TOPIC, EntityDeleted.TOPIC})
_XID: Final = len(b'{"xid":"')
#: Only the façades have what is forgotten; it has left the registry before (LEG-707).
_FORGOTTEN: Final = b',"reason":"forgotten",'


def _read_fields(row: LogRow) -> _StoredEventFields:
    """The fact in a stored event. Raises: UnreadableEvent."""
    if row.topic in TOPICS:
        try:
            return _read_ends(row)
        except (LookupError, TypeError, ValueError):
            pass  # whoever reads it as a whole says what is wrong with it
    return _fields_of(_MAPPER.of_row(row))


def _read_ends(row: LogRow) -> _StoredEventFields:
    """The fact in the first and the last bytes of an event of today's layout."""
    state = row.state
    xid = state[_XID : state.index(b'"', _XID)].decode()  # no character of an xid is escaped in JSON
    if row.topic in _WITHOUT_CHANGED:
        return _StoredEventFields(row.topic, xid, forgotten=row.topic == EntityDeleted.TOPIC and _FORGOTTEN in state)
    tail = orjson.loads(b"{" + state[len(image_in(state)) :])
    deprecated = tail.get("deprecated_changed")
    return _StoredEventFields(row.topic, xid, tuple(tail["changed"]), None if deprecated is None else tuple(deprecated))


def _fields_of(event: EntityEvent) -> _StoredEventFields:
    forgotten = isinstance(event, EntityDeleted) and event.reason == "forgotten"
    return _StoredEventFields(event.TOPIC, event.xid, event.changed, event.deprecated_changed, forgotten)
