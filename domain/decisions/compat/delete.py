"""Deletions through the legacy APIs, and the retained Versions that go with a Group or a definition.

Rules LEG-210, LEG-213, LEG-707.
"""

from __future__ import annotations

from annals.domain.compat.errors import NoSuchVersion
from annals.domain.compat.legacy_apis import FACADE, legacy_api_of
from annals.domain.compat.publications import Publication
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.drafts import ResourceDraft
from annals.domain.decisions.commands import DeleteEntities
from annals.domain.decisions.compat.version_numbers import USED_NUMBERS
from annals.domain.decisions.delete import delete_entities
from annals.domain.decisions.rules.readonly import check_writable
from annals.domain.decisions.rules.removal import check_removable
from annals.domain.decisions.write_resource import add_version
from annals.domain.decisions.xrefs import check_no_xref
from annals.domain.registry.explicit_values import DEFAULT_MARKS
from annals.domain.values import xid as xids


def apply_legacy_delete(changes: ChangeSet, command: DeleteEntities) -> None:
    """Applies one DeleteEntities of a legacy API to a change; the rules complete it at its end.

    Raises: NotFound, NoSuchVersion; Readonly, BadRequest, ExtraXrefAttribute if the current state does not allow it.
    """
    number = command.facade.number if command.facade else None
    if number is None:
        if len(xids.segments(command.xid)) == 4:
            check_no_xref(changes.existing_resource(command.xid))
        delete_entities(changes, command)
        return
    xid = xids.resource_of(command.xid)
    resource = changes.existing_resource(xid)
    check_writable(changes, xid, command.ignore)
    check_no_xref(resource)
    _retract_version(changes, resource, number)


def forget_retained_versions(changes: ChangeSet) -> None:
    """Forgets retained Versions of deleted Groups and definitions, and of definitions that now have an xref."""
    for group in changes.groups.values():
        if group.is_deleted and legacy_api_of(group.xid):
            changes.forget_publications(changes.world.publications.retained_versions(group.xid))
    for resource in changes.resources.values():
        if resource.entity is not None and _has_lost_all_versions(resource) and legacy_api_of(resource.xid):
            changes.forget_publications(changes.world.publications.retained_versions(resource.xid))


def _has_lost_all_versions(resource: ResourceDraft) -> bool:
    """Whether a Resource that may have retained Versions loses all its Versions."""
    stored = resource.entity
    if stored is None or USED_NUMBERS not in stored.private.get(FACADE, {}):
        return False
    return resource.is_deleted or (resource.xref is not None and "xref" not in stored.attributes["meta"])


def _retract_version(changes: ChangeSet, resource: ResourceDraft, number: int) -> None:
    changes.load_versions(resource)
    live_version = next((version for version in resource.live_versions() if version.number == number), None)
    retained = {
        publication.number: publication for publication in changes.world.publications.retained_versions(resource.xid)
    }
    if live_version is not None:
        live_version.deletion_reason = "deleted"
        resource.membership_changed = resource.needs_completion = True
        if retained and not resource.live_versions():
            _restore_version(changes, resource, retained[max(retained)])
        elif not resource.live_versions():
            check_removable(changes.existing_entity(resource.xid), changes.context.now)
    elif number in retained:
        changes.forget_publications([retained[number]])
    else:
        raise NoSuchVersion(number=number)


def _restore_version(changes: ChangeSet, resource: ResourceDraft, publication: Publication) -> None:
    """Makes a retained Version live again, as the one that the registry shows (LEG-213)."""
    image = changes.world.publications.pruned_entity(publication)
    draft = changes.version(resource, image.id)
    add_version(resource, draft, is_client_id=False)
    draft.restore(image.attributes, resource.type.version)
    draft.document, draft.ordering_time = image.document, image.private.get("ordered")
    draft.default_marks, draft.facade = image.private.get(DEFAULT_MARKS, {}), image.private.get(FACADE, {})
