"""Versions that are published under numbers and URIs, and the port through which decisions look them up.

A Version that `maxversions` pruned is retained: the registry no longer shows it, but the legacy APIs still serve it,
because clients must be able to find what was published (LEG-707). A stream holds one Version at a time: when the id of
a retained Version is created again, that is the same Version, which is live again under its old number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from annals.domain.compat.legacy_apis import FACADE, LegacyApi, legacy_api_of, version_number
from annals.domain.compat.uris import normalize_uri
from annals.domain.registry.entities import Entity
from annals.domain.registry.events import EntityCreated, EntityDeleted, EntityEvent
from annals.domain.values import xid as xids

#: The private member of a deletion with the number of the deleted Version, where that is not its versionid.
NUMBER: Final = "number"


class Publication(NamedTuple):
    """A Version that was retained at some time, or that had its own URI or id.

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


class PublishedVersion(NamedTuple):
    """A live or retained Version under its number. entity: its state, current or from when it was pruned."""

    number: int
    entity: Entity

    @property
    def definition(self) -> str:
        """The xid of its Resource."""
        return xids.resource_of(self.entity.xid)


class Publications(Protocol):
    """The look-ups of publications that decisions need."""

    def retained_versions(self, xid: str) -> Sequence[Publication]:
        """The retained Versions at or below a Group, a Resource or a Version, ordered by tree key."""

    def by_uri(self, family: LegacyApi, uri: str) -> Publication | None:
        """The live or retained Version with this URI, which must be normalised and not a default one."""

    def by_id(self, family: LegacyApi, id: str) -> Publication | None:
        """The live or retained Version to which a client gave this id."""

    def by_document(self, definition: str, sha256: str, *, has_retained: bool) -> Sequence[PublishedVersion]:
        """The live and retained Versions of a Resource with a document.

        has_retained: whether it may have retained ones.
        """

    def pruned_entity(self, publication: Publication) -> Entity:
        """The entity of a retained Version as it was when it was pruned."""


class NoPublications:
    """`Publications` of a world without legacy APIs: nothing is retained, and no Version has its own URI."""

    def retained_versions(self, xid: str) -> Sequence[Publication]:
        return ()

    def by_uri(self, family: LegacyApi, uri: str) -> Publication | None:
        return None

    def by_id(self, family: LegacyApi, id: str) -> Publication | None:
        return None

    def by_document(self, definition: str, sha256: str, *, has_retained: bool) -> Sequence[PublishedVersion]:
        return ()

    def pruned_entity(self, publication: Publication) -> Entity:
        raise LookupError(publication.xid)


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
    return isinstance(event, EntityCreated) and (event.revision > 1 or _has_own_name(event.private))


def fold_publications(
    events: Iterable[tuple[int, EntityEvent]],
    live_version: LiveVersion | None = None,
    retained: Publication | None = None,
) -> list[Publication]:
    """The publications of one Version's stream that the events create or change, in their final state.

    events: with positions, in order. live_version: the live Version before the events. retained: the retained one, if
    none is live.
    """
    changed: dict[int, Publication] = {}
    current = retained
    for position, event in events:
        if isinstance(event, EntityDeleted):
            current = _publication_after_deletion(event, position, live_version, current, changed)
            live_version = None
            continue
        if isinstance(event, EntityCreated) and current is not None:
            changed[current.born] = current._replace(gone=position)
            current = None
        live_version = LiveVersion(position, event.private, event.creation_position(position))
        if isinstance(event, EntityCreated) and _has_own_name(event.private):
            new_publication = live_publication(event.xid, live_version)
            changed[new_publication.born] = new_publication
    return list(changed.values())


def live_publication(xid: str, live_version: LiveVersion) -> Publication:
    """The publication of a live Version."""
    facade = live_version.private.get(FACADE, {})
    uri = facade.get("uri")
    number = version_number(xids.entity_id(xid), live_version.private)
    return Publication(xid, live_version.born or 0, number, facade.get("id"), normalize_uri(uri) if uri else None)


def _publication_after_deletion(
    event: EntityDeleted,
    position: int,
    live_version: LiveVersion | None,
    retained: Publication | None,
    changed: dict[int, Publication],
) -> Publication | None:
    """The retained publication after a deletion, None where none is left.

    changed: collects changed publications by birth.
    """
    if live_version is None:  # the Version never existed, or it was pruned before
        if retained is not None and event.reason == "forgotten":
            changed[retained.born] = retained._replace(gone=position)
            return None
        return retained
    ended = live_publication(event.xid, live_version)
    if event.reason == "pruned":
        changed[ended.born] = ended = ended._replace(since=live_version.since, pruned=position)
        return ended
    if _has_own_name(live_version.private):
        changed[ended.born] = ended._replace(gone=position)
    return None


def _has_own_name(private: Mapping[str, Any]) -> bool:
    facade = private.get(FACADE, {})
    return "uri" in facade or "id" in facade
