"""This registry's own entities in the forms by which they are compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from commands.mapper import EventMapper
from domain import xid as xids
from domain.events import EntityDeleted, EntityEvent
from domain.jsontext import loads
from domain.links import LINK
from domain.model import Model, ResourceType
from projections.entities.query import View
from projections.entities.rows import Row
from projections.replication.standard.forms import (
    NOTHING,
    Content,
    GroupForm,
    ResourceForm,
    VersionForm,
    group_form,
    registry_form,
    resource_form,
    version_form,
)

_MAPPER = EventMapper()
#: Events of an entity that are looked at for who it was: `createdat` may be written, and others know the old one.
_BACK = 30
Form = TypeVar("Form")


@dataclass(frozen=True, slots=True)
class Held(Generic[Form]):
    """An entity that lives here. link: id of the link that it came over, None for what is of this registry."""

    form: Form
    link: str | None


class Birth(NamedTuple):
    """createdat: with the xid it tells one thing from another. link: see `Held`."""

    createdat: str | None
    link: str | None


class Here:
    """What a view shows, one entity at a time."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.model = _model(view)

    def registry(self) -> Held[GroupForm]:
        """The registry's own attributes."""
        row = self._view.entity(xids.REGISTRY)
        assert row is not None, "the registry is there before anything else"
        return _held(registry_form(loads(row.attributes), self.model.groups), row)

    def spoke(self) -> bool:
        """Whether the registry has lately said something of itself that came over no link."""
        events = map(_MAPPER.of_row, self._view.log.latest(xids.REGISTRY, _BACK))
        own = [event.attributes for event in events if LINK not in event.private]
        return any(registry_form(attributes, _counted(attributes)).attributes for attributes in own)

    def capabilities(self) -> Held[dict[str, Any]]:
        """The capabilities in force."""
        row = self._view.entity(xids.CAPABILITIES)
        assert row is not None, "there are capabilities before anything else"
        return _held(loads(row.attributes), row)

    def groups(self) -> Iterator[str]:
        """The xids of all Groups, in order."""
        for plural in self.model.groups:
            yield from [row.xid for row in self._view.subtree(f"/{plural}", (plural,))]

    def resources(self, group: str) -> list[tuple[str, str | None]]:
        """The xids of a Group's Resources, in order, each with the link that it came over."""
        plural = xids.segments(group)[0]
        types = [f"{plural}.{name}" for name in self.model.groups[plural].resources]
        return [(row.xid, _link(row)) for row in self._view.subtree(group, types)]

    def group(self, xid: str) -> Held[GroupForm] | None:
        """A living Group."""
        row = self._view.entity(xid)
        if row is None:
            return None
        return _held(group_form(loads(row.attributes), self.model.groups[xids.segments(xid)[0]]), row)

    def resource(self, xid: str) -> Held[ResourceForm] | None:
        """A living Resource."""
        row = self._view.entity(xid)
        if row is None:
            return None
        type = self.type_of(xid)
        rows = list(self._view.subtree(xid, (f"{row.type}.versions",)))
        versions = ((each.id, self._version(each, type)) for each in rows)
        return _held(resource_form(loads(row.attributes)["meta"], type, versions), row)

    def knows(self, xid: str) -> bool:
        """Whether the model has the type of a Group or Resource."""
        plural, *rest = xids.segments(xid)
        type = self.model.groups.get(plural)
        return type is not None and (len(rest) < 2 or rest[1] in type.resources)

    def type_of(self, xid: str) -> ResourceType:
        """The type of a Resource or Version."""
        plural, _, resources = xids.segments(xid)[:3]
        return self.model.groups[plural].resources[resources]

    def births(self, xid: str) -> list[Birth]:
        """What lived at an xid by its last events here, the last one first."""
        events = map(_MAPPER.of_row, self._view.log.latest(xids.stream(xid), _BACK))
        return [_birth(event) for event in events if not isinstance(event, EntityDeleted)]

    def _version(self, row: Row, type: ResourceType) -> VersionForm:
        digest, view = row.document, self._view
        content = Content(lambda: view.document(digest), digest) if digest else NOTHING
        return version_form(loads(row.attributes), type, content)


def _held(form: Form, row: Row) -> Held[Form]:
    return Held(form, _link(row))


def _counted(attributes: Mapping[str, Any]) -> list[str]:
    """The collections that an after-image of the registry counts: the model may have had others then."""
    return [name.removesuffix("count") for name in attributes if name.endswith("count")]


def _birth(event: EntityEvent) -> Birth:
    own = event.private.get("own") or event.attributes.get("meta", event.attributes)
    return Birth(own.get("createdat"), event.private.get(LINK))


def _link(row: Row) -> str | None:
    found: str | None = loads(row.private).get(LINK)
    return found


def _model(view: View) -> Model:
    row = view.entity(xids.MODEL)
    assert row is not None, "there is a model before anything else"
    attributes = loads(row.attributes)
    return Model.load(attributes["modelsource"], attributes["model"], loads(row.private).get("origins"))
