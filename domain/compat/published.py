"""What has been published under numbers and URIs, and where decisions look it up.

A Version that `maxversions` pruned is kept: it has left the registry, and the older APIs go on serving it, as what was
published has to be found (LEG-707). A stream has one Version at a time: when a kept one's id is created anew, that is
the same Version, which lives again under its number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from domain import xid as xids
from domain.compat.family import Family, family_of, number_of
from domain.entities import Entity
from domain.events import EntityDeleted, EntityEvent

#: The private member of a deletion that says which number went, where that is not the Version's id.
NUMBER: Final = "number"


class Publication(NamedTuple):
    """A Version that is kept, or that has a URI of its own.

    number: what the older APIs know it under. id: as given; uri: as composed, and normalised; None where they are the
    default ones. born: position of the event that created it. since: position of its last image where it is kept, None
    while it lives.
    """

    xid: str
    number: int
    id: str | None
    uri: str | None
    born: int
    since: int | None

    @property
    def kept(self) -> bool:
        """Whether the registry itself shows it no longer."""
        return self.since is not None


class Publications(Protocol):
    """Where decisions look."""

    def kept(self, xid: str) -> Sequence[Publication]:
        """The kept Versions at or below a Group, a Resource or a Version, by tree key."""

    def by_uri(self, family: Family, uri: str) -> Publication | None:
        """The Version, living or kept, that has this URI, which is normalised and no default one."""

    def by_id(self, family: Family, id: str) -> Publication | None:
        """The Version, living or kept, that was given this id."""

    def image(self, kept: Publication) -> Entity:
        """What a kept Version was when it was pruned."""


class Unpublished:
    """Of a world that no reader looks at: nothing is kept, and nothing has a URI of its own."""

    def kept(self, xid: str) -> Sequence[Publication]:
        return ()

    def by_uri(self, family: Family, uri: str) -> Publication | None:
        return None

    by_id = by_uri

    def image(self, kept: Publication) -> Entity:
        raise LookupError(kept.xid)


def withdrawn(event: EntityEvent) -> int | None:
    """The number that is not served any more after an event; None where nothing of the older APIs went.

    A pruned Version stays with them.
    """
    if not isinstance(event, EntityDeleted) or event.reason == "pruned" or event.type.count(".") != 2:
        return None
    if family_of(event.xid) is None:
        return None
    return int(event.private.get(NUMBER) or number_of(xids.entity_id(event.xid), {}))
