"""Versions that are published under numbers and URIs, and the port through which decisions look them up.

A Version that `maxversions` pruned is kept: the registry no longer shows it, but the legacy APIs still serve it,
because clients must be able to find what was published (LEG-707). A stream holds one Version at a time: when the id of
a kept Version is created again, that is the same Version, which is live again under its old number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from domain.compat.legacy_apis import FACADE, LegacyApi, legacy_api_of, version_number
from domain.compat.uris import normalize_uri
from domain.registry.entities import Entity
from domain.registry.events import EntityCreated, EntityDeleted, EntityEvent
from domain.values import xid as xids

#: The private member of a deletion with the number of the deleted Version, where that is not its versionid.
NUMBER: Final = "number"


class Publication(NamedTuple):
    """A Version that was kept at some time, or that had its own URI or id.

    born: position of the event that created it. number: its number in the legacy APIs. id: as the client gave it. uri:
    as composed, normalised. id and uri are None where they are the default ones. since: position of its last
    after-image before the pruning. pruned: position of the pruning. Both are None while it is live. gone: position
    where it was deleted, forgotten, or created again.
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
    def is_retained(self) -> bool:
        """Whether the legacy APIs still show the Version while the registry no longer does."""
        return self.pruned is not None and self.gone is None


class Publications(Protocol):
    """The look-ups of publications that decisions need."""

    def retained_versions(self, xid: str) -> Sequence[Publication]:
        """The kept Versions at or below a Group, a Resource or a Version, ordered by tree key."""

    def by_uri(self, family: LegacyApi, uri: str) -> Publication | None:
        """The live or kept Version with this URI, which must be normalised and not a default one."""

    def by_id(self, family: LegacyApi, id: str) -> Publication | None:
        """The live or kept Version to which a client gave this id."""

    def pruned_entity(self, kept: Publication) -> Entity:
        """The entity of a kept Version as it was when it was pruned."""


class NoPublications:
    """`Publications` of a world without legacy APIs: nothing is kept, and no Version has its own URI."""

    def retained_versions(self, xid: str) -> Sequence[Publication]:
        return ()

    def by_uri(self, family: LegacyApi, uri: str) -> Publication | None:
        return None

    def by_id(self, family: LegacyApi, id: str) -> Publication | None:
        return None

    def pruned_entity(self, kept: Publication) -> Entity:
        raise LookupError(kept.xid)


class LiveVersion(NamedTuple):
    """A live Version: position of its last event, its private members, and the position of its creation."""

    since: int
    private: Mapping[str, Any]
    born: int | None


def affects_publications(event: EntityEvent) -> bool:
    """Whether an event can change publications. Events of ordinary Versions cannot while the Version is live."""
    if event.type.count(".") != 2 or legacy_api_of(event.xid) is None:
        return False
    if isinstance(event, EntityDeleted):
        return True
    return isinstance(event, EntityCreated) and (event.revision > 1 or _has_own(event.private))


def fold_publications(
    events: Iterable[tuple[int, EntityEvent]], living: LiveVersion | None = None, kept: Publication | None = None
) -> list[Publication]:
    """The publications of one Version's stream that the events create or change, in their final state.

    events: with positions, in order. living: the live Version before the events. kept: the kept one, if none is live.
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
        living = LiveVersion(position, event.private, event.creation_position(position))
        if isinstance(event, EntityCreated) and _has_own(event.private):
            new = live_publication(event.xid, living)
            found[new.born] = new
    return list(found.values())


def live_publication(xid: str, living: LiveVersion) -> Publication:
    """The publication of a live Version."""
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
    """The kept publication after a deletion, None where none is left. found: collects changed publications by birth."""
    if living is None:  # the Version never existed, or it was pruned before
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
