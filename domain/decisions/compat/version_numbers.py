"""Version numbers: each Version of a definition has one, and none is used twice in a definition's lifetime.

Rules LEG-210, LEG-405, LEG-406, LEG-409, LEG-707.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from annals.domain.compat.legacy_apis import FACADE, legacy_api_of, number_from_id, without_members
from annals.domain.compat.number_ranges import NumberRanges
from annals.domain.compat.publications import Publication
from annals.domain.compat.uris import normalize_uri
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.drafts import ResourceDraft, VersionDraft
from annals.domain.decisions.rules import ancestry

#: The member of a Resource's `facade` with the numbers of its deleted Versions, in the notation of `NumberRanges`.
USED_NUMBERS: Final = "used"
#: The member with the highest number that any of its Versions ever had, so that the next one is known without reading
#: all Versions. Only definitions have it to which a legacy API has added a Version, that have deleted Versions, or of
#: which the id of a Version is not its number.
HIGHEST_NUMBER: Final = "highest"
#: The members that belong to the lifetime of a definition, and not to its state at a moment.
LIFETIME_MEMBERS: Final = (USED_NUMBERS, HIGHEST_NUMBER)


def number_versions(changes: ChangeSet) -> None:
    """Assigns each new Version its number, and records the numbers of removed Versions."""
    for resource in changes.resources.values():
        # An import has thousands of Resources that need nothing here.
        if not resource.membership_changed or resource.is_deleted or legacy_api_of(resource.xid) is None:
            continue
        if resource.only_appends and not _are_free_numbers_known(resource):
            changes.load_versions(resource)
        if not _is_id_its_number(resource):
            if HIGHEST_NUMBER not in resource.facade:  # it is stored now, and trusted from then on
                changes.load_versions(resource)
            _number_versions(changes, resource)


def used_numbers(resource: ResourceDraft) -> NumberRanges:
    """The numbers of a definition's removed Versions, including retained ones."""
    return NumberRanges.parse(resource.facade.get(USED_NUMBERS, ""))


def next_number(changes: ChangeSet, resource: ResourceDraft) -> int:
    """The number of a Version that a legacy API adds; it is also its id, so that the Version is the latest (LEG-406).

    It is higher than every number and every server-assigned id that the definition ever had, and no Version has it as
    an id.
    """
    highest: int = resource.facade.get(HIGHEST_NUMBER, 0)
    removed_numbers = used_numbers(resource)
    if not highest:
        changes.load_versions(resource)
        numbers = [version.number for version in resource.versions.values()]
        # Those without a number get theirs first.
        highest = max(*numbers, removed_numbers.highest, 0) + numbers.count(0)
    number = max(resource.counter, highest, removed_numbers.highest) + 1
    while _is_id_of_version(changes, f"{resource.xid}/versions/{number}", removed_numbers):
        number += 1
    return number


def _is_id_of_version(changes: ChangeSet, xid: str, removed_numbers: NumberRanges) -> bool:
    """Whether there is a live or retained Version with an xid."""
    return changes.find(xid) is not None or bool(_retained_versions(changes, xid, removed_numbers))


def _number_versions(changes: ChangeSet, resource: ResourceDraft) -> None:
    stored_versions = [version for version in resource.versions.values() if version.entity is not None]
    new_versions = [version for version in resource.live_versions() if version.entity is None]
    deleted_numbers = {version.number for version in stored_versions if version.deletion_reason is not None} - {0}
    previously_used = used_numbers(resource)
    taken_numbers = {
        previously_used.highest,
        _highest_number(resource),
        *(version.number for version in stored_versions),
    }
    _assign_next_numbers(
        resource,
        taken_numbers,
        [version for version in stored_versions if version.deletion_reason is None and not version.number],
    )
    _assign_next_numbers(
        resource,
        taken_numbers,
        [
            version
            for version in new_versions
            if not _keeps_own_number(changes, version, previously_used, taken_numbers)
        ],
    )
    used = previously_used.with_numbers(deleted_numbers).without_numbers(version.number for version in new_versions)
    others = without_members(resource.facade, *LIFETIME_MEMBERS)
    used_member = {USED_NUMBERS: used.text} if used.ranges else {}
    resource.facade = {**others, **used_member, HIGHEST_NUMBER: max(taken_numbers)}


def _assign_next_numbers(resource: ResourceDraft, taken_numbers: set[int], versions: Sequence[VersionDraft]) -> None:
    """Assigns Versions the numbers after the highest used one, the oldest Version first."""
    for number, version in enumerate(_sort_by_age(resource, versions), max(taken_numbers) + 1):
        _set_number(version, number)
        taken_numbers.add(number)


def _retained_versions(changes: ChangeSet, xid: str, removed_numbers: NumberRanges) -> Sequence[Publication]:
    """The retained Versions at or below an xid. removed_numbers: the numbers of its definition's removed Versions."""
    return changes.world.publications.retained_versions(xid) if removed_numbers.ranges else ()


def _are_free_numbers_known(resource: ResourceDraft) -> bool:
    """Whether the stored Versions that are not loaded cannot have the numbers of the new ones."""
    highest = _highest_number(resource)
    if not highest:
        return False
    numbers = (number_from_id(version.id) for version in resource.versions.values() if version.is_new)
    return all(not number or number > highest for number in numbers)


def _highest_number(resource: ResourceDraft) -> int:
    """The highest number that any Version had before the change; 0 if it is not known without reading all Versions."""
    highest: int = resource.facade.get(HIGHEST_NUMBER, 0)
    if highest or USED_NUMBERS in resource.facade or resource.entity is None:
        return highest
    # Nothing was removed. So if there are as many Versions as ids that the server assigned, they have just these ids.
    counter: int = resource.entity.private.get("counter", 0)
    return counter if counter == resource.entity.attributes.get("versionscount") else 0


def _is_id_its_number(resource: ResourceDraft) -> bool:
    """Whether the id of each Version is its number, and no other Version ever had it."""
    if USED_NUMBERS in resource.facade or HIGHEST_NUMBER in resource.facade:
        return False
    for version in resource.versions.values():
        is_posted = version.assigned_number is not None
        if is_posted or version.deletion_reason is not None or version.facade or not number_from_id(version.id):
            return False
    return True


def _keeps_own_number(
    changes: ChangeSet, version: VersionDraft, previously_used: NumberRanges, taken_numbers: set[int]
) -> bool:
    """Whether a new Version gets a number of its own: a former one, an assigned one, or its id."""
    if version.facade:
        _leave_to_others(changes, version)
    retained = _retained_versions(changes, version.xid, previously_used) if changes.world.revision(version.xid) else ()
    number = number_from_id(version.id)
    if retained:
        _restore_names(changes, version, retained[0])
    elif version.assigned_number is not None:
        _set_number(version, version.assigned_number)
    elif number and number not in taken_numbers and not previously_used.contains(number):
        _set_number(version, number)
    else:
        return False
    taken_numbers.add(version.number)
    return True


def _leave_to_others(changes: ChangeSet, version: VersionDraft) -> None:
    """Removes a name from a restored Version if another Version has received it meanwhile."""
    published, family = changes.world.publications, legacy_api_of(version.xid)
    id, uri = version.facade.get("id"), version.facade.get("uri")
    holders = (
        id and family and published.by_id(family, id),
        uri and family and published.by_uri(family, normalize_uri(uri)),
    )
    if any(holder and holder.xid != version.xid and not changes.is_version_deleted(holder.xid) for holder in holders):
        version.facade = without_members(version.facade, "id", "uri")


def _restore_names(changes: ChangeSet, version: VersionDraft, publication: Publication) -> None:
    """Gives a retained Version that is created again the names under which it was published."""
    facade = changes.world.publications.pruned_entity(publication).private.get(FACADE, {})
    version.facade = version.facade | {name: facade[name] for name in ("id", "uri") if name in facade}
    _set_number(version, publication.number)


def _set_number(version: VersionDraft, number: int) -> None:
    others = without_members(version.facade, "number")
    version.facade = others if str(number) == version.id else {**others, "number": number}


def _sort_by_age(resource: ResourceDraft, versions: Sequence[VersionDraft]) -> list[VersionDraft]:
    """Versions in the order of their type, the newest last, because it is the latest in the legacy APIs."""
    mode = resource.type.versionmode
    lineages = [
        ancestry.VersionLineage(
            draft.id, draft.ancestorid, attributes["createdat"], draft.ordering_time or attributes["modifiedat"]
        )
        for draft in versions
        if (attributes := draft.attributes)
    ]
    by_id = {version.id: version for version in versions}
    return [by_id[lineage.id] for lineage in ancestry.oldest_versions(mode, lineages, len(lineages))]
