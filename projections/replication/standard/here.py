"""This registry's own entities in the forms by which they are compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from commands.mapper import EventMapper
from domain import xid as xids
from domain.events import EntityDeleted
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
    resource_form,
    version_form,
)

_MAPPER = EventMapper()
Form = TypeVar("Form")


@dataclass(frozen=True, slots=True)
class Held(Generic[Form]):
    """An entity that lives here. link: id of the link that it came over, None for what is of this registry.

    createdat: when it was made, wherever that was; that of a pointer too.
    """

    form: Form
    link: str | None
    createdat: str | None


class Here:
    """What a view shows, one entity at a time."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.model = _model(view)

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

    def type_of(self, xid: str) -> ResourceType:
        """The type of a Resource or Version."""
        plural, _, resources = xids.segments(xid)[:3]
        return self.model.groups[plural].resources[resources]

    def birth_of_deleted(self, xid: str) -> tuple[str | None, str | None] | None:
        """`createdat` and link of what lived at an xid until it was deleted; None where nothing was."""
        last = self._view.log.latest(xids.stream(xid), 2)
        if len(last) < 2 or last[0].topic != EntityDeleted.TOPIC:
            return None
        before = _MAPPER.of_row(last[1])
        own = before.private.get("own") or before.attributes.get("meta", before.attributes)
        return own.get("createdat"), before.private.get(LINK)

    def _version(self, row: Row, type: ResourceType) -> VersionForm:
        digest, view = row.document, self._view
        content = Content(lambda: view.document(digest), digest) if digest else NOTHING
        return version_form(loads(row.attributes), type, content)


def _held(form: Form, row: Row) -> Held[Form]:
    own = loads(row.private).get("own") or {}
    return Held(form, _link(row), row.createdat or own.get("createdat"))


def _link(row: Row) -> str | None:
    found: str | None = loads(row.private).get(LINK)
    return found


def _model(view: View) -> Model:
    row = view.entity(xids.MODEL)
    assert row is not None, "there is a model before anything else"
    attributes = loads(row.attributes)
    return Model.load(attributes["modelsource"], attributes["model"], loads(row.private).get("origins"))
