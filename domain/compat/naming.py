"""Who has a URI or an id already that a Version is to be published under (LEG-606)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from domain import xid as xids
from domain.changes import ChangeSet
from domain.compat.facade import Facade
from domain.compat.family import FACADE
from domain.compat.numbers import USED, next_number
from domain.compat.published import Publication
from domain.compat.refusals import Conflict
from domain.compat.uris import Located, compose, ending, located, normalised, path_to
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


def check_place(changes: ChangeSet, facade: Facade, uri: str, xid: str, number: int) -> None:
    """Raises: Conflict for a URI that is the path of another Version than that of a definition with a number.

    It may be of one that is yet to come: who looks for that one would find this one, and its own POST a clash.
    """
    place = located(facade.family, uri, (facade.base, facade.base.removesuffix(facade.family.base)))
    is_own = place is None or (_definition(facade, place) == xid and place.version in (number, str(number)))
    if not is_own or _is_anothers(changes, facade, uri, xid):
        raise Conflict(error_detail='its "id" makes the URI the path of another version, now or later (LEG-606)')


def _is_anothers(changes: ChangeSet, facade: Facade, uri: str, xid: str) -> bool:
    """Whether another definition, behind its own authority, is to give a Version the URI by default.

    One that is not there yet claims nothing, as a copy may be kept under another name than in its registry (LEG-903).
    """
    place = ending(facade.family, uri)
    other = changes.find(_definition(facade, place)) if place is not None else None
    authority = other.private.get(FACADE, {}).get("authority") if other is not None else None
    if place is None or other is None or authority is None or other.xid == xid:
        return False
    number = int(place.version)
    if normalised(compose(authority, None, facade.base, path_to(other.xid, number))) != normalised(uri):
        return False
    resource = changes.resource(other.xid)
    changes.load_versions(resource)
    return number >= next_number(changes, resource)


def _definition(facade: Facade, place: Located) -> str:
    """The xid of the definition that a Version is of."""
    return xids.join(facade.family.groups, place.groupid, facade.family.resources, place.id)


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
    definition = _definition(facade, place)
    if changes.find(definition) is None:
        return None
    resource = changes.resource(definition)
    changes.load_versions(resource)
    for found in versions_of(changes, resource):
        if place.version in (found.number, found.image.id):
            return found
    return None
