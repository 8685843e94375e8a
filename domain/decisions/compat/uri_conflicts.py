"""Which Version already has a URI or an id under which a Version is to be published (LEG-606)."""

from __future__ import annotations

from collections.abc import Iterator

from annals.domain.compat.errors import Conflict
from annals.domain.compat.legacy_apis import FACADE
from annals.domain.compat.publications import Publication, PublishedVersion
from annals.domain.compat.request_extras import LegacyWrite
from annals.domain.compat.uris import (
    VersionLocation,
    compose_uri,
    entity_path,
    locate_by_ending,
    locate_version,
    normalize_uri,
)
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.drafts import ResourceDraft
from annals.domain.decisions.compat.version_numbers import USED_NUMBERS, next_number
from annals.domain.values import xid as xids


def find_published(changes: ChangeSet, facade: LegacyWrite, uri: str, *, default: bool) -> PublishedVersion | None:
    """The Version that already has a URI, or the id that the request gives.

    default: the URI is the path of the Version to be created, which no other path can equal.
    """
    published, family = changes.world.publications, facade.family
    publication = published.by_id(family, facade.id) if facade.id is not None else None
    publication = publication or published.by_uri(family, normalize_uri(uri))
    if publication is not None:
        return _version_of_publication(changes, publication)
    root = facade.base.removesuffix(family.base)
    location = None if default else locate_version(family, uri, (facade.base, root))
    return _version_at(changes, facade, location) if location is not None else None


def check_uri_path(changes: ChangeSet, facade: LegacyWrite, uri: str, xid: str, number: int) -> None:
    """Raises: Conflict if a URI is the path of a Version other than the given number of the given definition.

    The other Version may not exist yet. If it did later, its path would lead to this Version, and its own POST would
    conflict.
    """
    location = locate_version(facade.family, uri, (facade.base, facade.base.removesuffix(facade.family.base)))
    is_own = location is None or (
        _definition_xid(facade, location) == xid and location.version in (number, str(number))
    )
    if not is_own or _is_uri_of_other(changes, facade, uri, xid):
        raise Conflict(
            error_detail='its "id" gives it a URI that is, or can become, the path of another version (LEG-606)'
        )


def _is_uri_of_other(changes: ChangeSet, facade: LegacyWrite, uri: str, xid: str) -> bool:
    """Whether another definition, with its own authority, will by default give one of its Versions this URI.

    A definition that does not exist yet claims no URI, because a copy may have another name than its original
    (LEG-903).
    """
    location = locate_by_ending(facade.family, uri)
    other = changes.find(_definition_xid(facade, location)) if location is not None else None
    authority = other.private.get(FACADE, {}).get("authority") if other is not None else None
    if location is None or other is None or authority is None or other.xid == xid:
        return False
    number = int(location.version)
    if normalize_uri(compose_uri(authority, None, facade.base, entity_path(other.xid, number))) != normalize_uri(uri):
        return False
    return number >= next_number(changes, changes.resource(other.xid))


def _definition_xid(facade: LegacyWrite, location: VersionLocation) -> str:
    """The xid of the definition to which a Version belongs."""
    return xids.join(facade.family.groups, location.groupid, facade.family.resources, location.id)


def _published_versions(changes: ChangeSet, resource: ResourceDraft) -> Iterator[PublishedVersion]:
    """The Versions that a definition had before this change, live ones first. O(Versions)."""
    changes.load_versions(resource)
    for version in resource.versions.values():
        if version.entity is not None:
            yield PublishedVersion(version.number, version.entity)
    if USED_NUMBERS in resource.facade:
        for publication in changes.world.publications.retained_versions(resource.xid):
            yield _version_of_publication(changes, publication)


def _version_of_publication(changes: ChangeSet, publication: Publication) -> PublishedVersion:
    image = (
        changes.world.publications.pruned_entity(publication)
        if publication.is_retained
        else changes.existing_entity(publication.xid)
    )
    return PublishedVersion(publication.number, image)


def _version_at(changes: ChangeSet, facade: LegacyWrite, location: VersionLocation) -> PublishedVersion | None:
    definition = _definition_xid(facade, location)
    if changes.find(definition) is None:
        return None
    for published in _published_versions(changes, changes.resource(definition)):
        if location.version in (published.number, published.entity.id):
            return published
    return None
