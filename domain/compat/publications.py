"""What has been published under numbers and URIs, and where decisions look it up.

A Version that `maxversions` pruned is kept: it has left the registry, and the older APIs go on serving it, as what was
published has to be found (LEG-707). A stream has one Version at a time: when a kept one's id is created anew, that is
the same Version, which lives again under its number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from domain.compat.legacy_apis import FACADE, LegacyApi, legacy_api_of, version_number
from domain.compat.uris import normalize_uri
from domain.registry.entities import Entity
from domain.registry.events import EntityCreated, EntityDeleted, EntityEvent
from domain.values import xid as xids

#: The private member of a deletion that says which number went, where that is not the Version's id.
NUMBER: Final = "number"


class Publication(NamedTuple):
    """A Version that was kept at some time, or that had a URI of its own.

    born: position of the event that created it. number: what the older APIs know it under. id: as given; uri: as
    composed, and normalised; None where they are the default ones. since: position of its last image where it was
    pruned, and pruned: where that was; None while it lives. gone: where it was deleted, was forgotten or lived again.
    """

    xid: str
    born: int
    number: int
    id: str | None
    uri: str | None
    since: int | None = None
    pruned: int | None = None
    gone: int | None = None

    @property
    def kept(self) -> bool:
        """Whether the registry itself shows it no longer, while the older APIs do."""
        return self.pruned is not None and self.gone is None


class Publications(Protocol):
    """Where decisions look."""

    def kept(self, xid: str) -> Sequence[Publication]:
        """The kept Versions at or below a Group, a Resource or a Version, by tree key."""

    def by_uri(self, family: LegacyApi, uri: str) -> Publication | None:
        """The Version, living or kept, that has this URI, which is normalised and no default one."""

    def by_id(self, family: LegacyApi, id: str) -> Publication | None:
        """The Version, living or kept, that was given this id."""

    def image(self, kept: Publication) -> Entity:
        """What a kept Version was when it was pruned."""


class NoPublications:
    """Of a world that no reader looks at: nothing is kept, and nothing has a URI of its own."""

    def kept(self, xid: str) -> Sequence[Publication]:
        return ()

    def by_uri(self, family: LegacyApi, uri: str) -> Publication | None:
        return None

    def by_id(self, family: LegacyApi, id: str) -> Publication | None:
        return None

    def image(self, kept: Publication) -> Entity:
        raise LookupError(kept.xid)


class LiveVersion(NamedTuple):
    """A living Version: position of its last event, its private members, and the position of its creation."""

    since: int
    private: Mapping[str, Any]
    born: int | None


def affects_publications(event: EntityEvent) -> bool:
    """Whether publications can follow from an event. Of ordinary Versions none do, as long as they live."""
    if event.type.count(".") != 2 or legacy_api_of(event.xid) is None:
        return False
    if isinstance(event, EntityDeleted):
        return True
    return isinstance(event, EntityCreated) and (event.revision > 1 or _has_own(event.private))


def fold_publications(
    events: Iterable[tuple[int, EntityEvent]], living: LiveVersion | None = None, kept: Publication | None = None
) -> list[Publication]:
    """The publications of one Version's stream that are new or changed after its events, as they are in the end.

    events: with positions, in order. living: what is there before; kept: the kept one that is there instead.
    """
    found: dict[int, Publication] = {}
    standing = kept
    for position, event in events:
        if isinstance(event, EntityDeleted):
            standing = _ended(event, position, living, standing, found)
            living = None
            continue
        if isinstance(event, EntityCreated) and standing is not None:
            found[standing.born] = standing._replace(gone=position)
            standing = None
        living = LiveVersion(position, event.private, event.birth(position))
        if isinstance(event, EntityCreated) and _has_own(event.private):
            new = live_publication(event.xid, living)
            found[new.born] = new
    return list(found.values())


def live_publication(xid: str, living: LiveVersion) -> Publication:
    """A living Version as it is published."""
    facade = living.private.get(FACADE, {})
    uri = facade.get("uri")
    number = version_number(xids.entity_id(xid), living.private)
    return Publication(xid, living.born or 0, number, facade.get("id"), normalize_uri(uri) if uri else None)


def _ended(
    event: EntityDeleted,
    position: int,
    living: LiveVersion | None,
    standing: Publication | None,
    found: dict[int, Publication],
) -> Publication | None:
    """The kept one after a deletion."""
    if living is None:  # it was never there, or its image was pruned before
        if standing is not None and event.reason == "forgotten":
            found[standing.born] = standing._replace(gone=position)
            return None
        return standing
    own = live_publication(event.xid, living)
    if event.reason == "pruned":
        found[own.born] = own = own._replace(since=living.since, pruned=position)
        return own
    if _has_own(living.private):
        found[own.born] = own._replace(gone=position)
    return None


def _has_own(private: Mapping[str, Any]) -> bool:
    facade = private.get(FACADE, {})
    return "uri" in facade or "id" in facade
