"""Who has a URI or an id already that a Version is to be published under (LEG-606)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from domain import xid as xids
from domain.changes import ChangeSet
from domain.compat.facade import Facade
from domain.compat.numbers import USED
from domain.compat.published import Publication
from domain.compat.refusals import Conflict
from domain.compat.uris import Located, located, normalised
from domain.drafts import ResourceDraft
from domain.entities import Entity


class Holder(NamedTuple):
    """A Version, living or kept. definition: xid of the Resource; image: what it is, or was when it was pruned."""

    definition: str
    number: int
    image: Entity


def holder(changes: ChangeSet, facade: Facade, uri: str, *, default: bool) -> Holder | None:
    """The Version that has a URI already, or the id that a façade is given.

    default: the URI is that of the path of a Version that is only to be, which no other path can be.
    """
    published, family = changes.world.published, facade.family
    found = published.by_id(family, facade.id) if facade.id is not None else None
    found = found or published.by_uri(family, normalised(uri))
    if found is not None:
        return _held(changes, found)
    root = facade.base.removesuffix(family.base)
    place = None if default else located(family, uri, (facade.base, root))
    return _at(changes, facade, place) if place is not None else None


def check_place(facade: Facade, uri: str, xid: str, number: int) -> None:
    """Raises: Conflict for a URI that is the path of another Version than that of a definition with a number.

    It may be of one that is yet to come: who looks for that one would find this one, and its own POST a clash.
    """
    place = located(facade.family, uri, (facade.base, facade.base.removesuffix(facade.family.base)))
    if place is None:
        return
    definition = xids.join(facade.family.groups, place.groupid, facade.family.resources, place.id)
    if definition != xid or place.version not in (number, str(number)):
        raise Conflict(error_detail="this URI is the path of another version, now or later (LEG-606)")


def versions_of(changes: ChangeSet, resource: ResourceDraft) -> Iterator[Holder]:
    """The Versions that a definition had before this change, living ones first, which are all at hand. O(Versions)."""
    for version in resource.versions.values():
        if version.entity is not None:
            yield Holder(resource.xid, version.number, version.entity)
    if USED in resource.facade:
        for kept in changes.world.published.kept(resource.xid):
            yield _held(changes, kept)


def _held(changes: ChangeSet, found: Publication) -> Holder:
    image = changes.world.published.image(found) if found.kept else changes.existing(found.xid)
    return Holder(found.xid.split("/versions/")[0], found.number, image)


def _at(changes: ChangeSet, facade: Facade, place: Located) -> Holder | None:
    definition = xids.join(facade.family.groups, place.groupid, facade.family.resources, place.id)
    if changes.find(definition) is None:
        return None
    resource = changes.resource(definition)
    changes.load_versions(resource)
    for found in versions_of(changes, resource):
        if place.version in (found.number, found.image.id):
            return found
    return None
