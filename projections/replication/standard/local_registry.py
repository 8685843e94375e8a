"""This registry's entities in the form in which they are compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from annals.commands.store.mapper import EventMapper
from annals.domain.model import Model, ResourceType
from annals.domain.registry.events import EntityDeleted, EntityEvent
from annals.domain.replication import LINK
from annals.domain.values import xid as xids
from annals.domain.values.json_text import loads
from annals.projections.entities.rows import EntityRow
from annals.projections.entities.view import View
from annals.projections.replication.standard.comparable import (
    NO_CONTENT,
    ComparableGroup,
    ComparableResource,
    ComparableVersion,
    DocumentContent,
    comparable_group,
    comparable_registry,
    comparable_resource,
    comparable_version,
)

_MAPPER = EventMapper()
#: Number of an entity's events to search for earlier creation times. A client may change `createdat`, while other
#: registries know the old one.
_MAX_EVENTS = 30
ComparableT = TypeVar("ComparableT")


@dataclass(frozen=True, slots=True)
class LocalEntity(Generic[ComparableT]):
    """An entity of this registry. link: id of the link over which it came, None for the registry's own."""

    comparable: ComparableT
    link: str | None


class CreationRecord(NamedTuple):
    """The identity of an entity at one of its events.

    createdat: with the xid, it identifies the entity.
    link: see `LocalEntity`.
    """

    createdat: str | None
    link: str | None


class LocalRegistry:
    """Reads entities from a view, one at a time."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.model = _load_model(view)

    def registry(self) -> LocalEntity[ComparableGroup]:
        """The registry's own attributes."""
        row = self._view.entity(xids.REGISTRY)
        assert row is not None, "the registry is there before anything else"
        return _local_entity(comparable_registry(loads(row.attributes), self.model.groups), row)

    def has_own_changes(self) -> bool:
        """Whether one of its latest events wrote registry attributes that did not come over a link."""
        events = map(_MAPPER.event_of_row, self._view.log.latest(xids.REGISTRY, _MAX_EVENTS))
        own_attributes = [event.attributes for event in events if LINK not in event.private]
        return any(
            comparable_registry(attributes, _counted_collections(attributes)).attributes
            for attributes in own_attributes
        )

    def capabilities(self) -> LocalEntity[dict[str, Any]]:
        """The capabilities in force."""
        row = self._view.entity(xids.CAPABILITIES)
        assert row is not None, "there are capabilities before anything else"
        return _local_entity(loads(row.attributes), row)

    def groups(self) -> Iterator[str]:
        """The xids of all Groups, in order."""
        for plural in self.model.groups:
            yield from [row.xid for row in self._view.subtree(f"/{plural}", (plural,))]

    def resources(self, group: str) -> list[tuple[str, str | None]]:
        """The xids of a Group's Resources, in order, each with the link over which it came."""
        plural = xids.segments(group)[0]
        types = [f"{plural}.{name}" for name in self.model.groups[plural].resources]
        return [(row.xid, _link_of_row(row)) for row in self._view.subtree(group, types)]

    def group(self, xid: str) -> LocalEntity[ComparableGroup] | None:
        """An existing Group."""
        row = self._view.entity(xid)
        if row is None:
            return None
        return _local_entity(comparable_group(loads(row.attributes), self.model.groups[xids.segments(xid)[0]]), row)

    def resource(self, xid: str) -> LocalEntity[ComparableResource] | None:
        """An existing Resource."""
        row = self._view.entity(xid)
        if row is None:
            return None
        type = self.type_of(xid)
        rows = list(self._view.subtree(xid, (f"{row.type}.versions",)))
        versions = ((version_row.id, self._version(version_row, type)) for version_row in rows)
        return _local_entity(comparable_resource(loads(row.attributes)["meta"], type, versions), row)

    def has_type(self, xid: str) -> bool:
        """Whether the model has the type of a Group or Resource."""
        plural, *more_segments = xids.segments(xid)
        type = self.model.groups.get(plural)
        return type is not None and (len(more_segments) < 2 or more_segments[1] in type.resources)

    def type_of(self, xid: str) -> ResourceType:
        """The type of a Resource or Version."""
        plural, _, resources = xids.segments(xid)[:3]
        return self.model.groups[plural].resources[resources]

    def creation_records(self, xid: str) -> Iterator[CreationRecord]:
        """The identities of an xid's entities: at its last events, latest first, then where others were created.

        Read as far as they are asked for, because a Group has an event for each of its members.
        """
        for read in (self._view.log.latest, self._view.log.creations):
            events = map(_MAPPER.event_of_row, read(xids.stream(xid), _MAX_EVENTS))
            yield from (_creation_record(event) for event in events if not isinstance(event, EntityDeleted))

    def _version(self, row: EntityRow, type: ResourceType) -> ComparableVersion:
        digest, view = row.document, self._view
        content = DocumentContent(lambda: view.document(digest), digest) if digest else NO_CONTENT
        return comparable_version(loads(row.attributes), type, content)


def _local_entity(comparable: ComparableT, row: EntityRow) -> LocalEntity[ComparableT]:
    return LocalEntity(comparable, _link_of_row(row))


def _counted_collections(attributes: Mapping[str, Any]) -> list[str]:
    """The collections that an after-image of the registry counts. The model of that time may have had others."""
    return [name.removesuffix("count") for name in attributes if name.endswith("count")]


def _creation_record(event: EntityEvent) -> CreationRecord:
    own_attributes = event.private.get("own") or event.attributes.get("meta", event.attributes)
    return CreationRecord(own_attributes.get("createdat"), event.private.get(LINK))


def _link_of_row(row: EntityRow) -> str | None:
    link_id: str | None = loads(row.private).get(LINK)
    return link_id


def _load_model(view: View) -> Model:
    row = view.entity(xids.MODEL)
    assert row is not None, "there is a model before anything else"
    attributes = loads(row.attributes)
    return Model.load(attributes["modelsource"], attributes["model"], loads(row.private).get("origins"))
