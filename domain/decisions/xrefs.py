"""Cross references: a Resource with an xref shows another Resource of its type and has no content of its own.

Such a Resource is also called a pointer. Spec: core 1.0-rc4, "Cross Referencing Resources". Rules ENT-130 to 136,
EV-120 to 127.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.drafts import ResourceDraft
from annals.domain.decisions.rules.epochs import check_epoch
from annals.domain.decisions.rules.ids import take_id
from annals.domain.errors.problems import ExtraXrefAttribute, MalformedXref, Problem
from annals.domain.model.validation import targets
from annals.domain.model.validation.value_errors import InvalidXref
from annals.domain.values import xid as xids
from annals.domain.values.json_text import Json

#: What a meta may have next to its xref: ids, and the members of a copied response.
_NAVIGATION: Final = frozenset({"self", "shortself", "xid", "defaultversionurl"})


def requested_xref(resource: ResourceDraft, meta: Mapping[str, Json] | None, patch: bool) -> Json:
    """The xref of a Resource after a write of its meta, None for none (ENT-136)."""
    if meta is None:
        return resource.xref
    return meta.get("xref", resource.xref if patch else None)


def set_xref(
    changes: ChangeSet, resource: ResourceDraft, pointer: Json, other_members: Mapping[str, Json], meta: Json
) -> None:
    """Sets the xref of a Resource; its Versions are deleted permanently (ENT-132).

    other_members: those of the Resource in the request, next to its meta; any of them is an error (ENT-131).
    Raises: MalformedXref, ExtraXrefAttribute, MismatchedEpoch.
    """
    meta_members = dict(meta or {})
    take_id(meta_members, resource.type.singular, xids.entity_id(resource.xid), resource.meta.xid)
    meta_members.pop("xref", None)
    epoch = None if resource.is_new or resource.xref is not None else meta_members.pop("epoch", None)
    for name in (*other_members, *(name for name in meta_members if name not in _NAVIGATION)):
        raise extra_xref_attribute(resource, name)
    check_epoch(resource.meta.xid, epoch, resource.meta.before["epoch"] if resource.meta.before else None)
    target = _parse_target(changes, resource, pointer)
    changes.load_versions(resource)
    for version in resource.live_versions():
        version.deletion_reason = "deleted"
        resource.membership_changed = True
    resource.xref = target
    resource.always_changed = (
        _target_names(changes, target) - {f"{resource.type.singular}id"} if resource.membership_changed else frozenset()
    )
    resource.meta.become_pointer()


def remove_xref(changes: ChangeSet, resource: ResourceDraft) -> None:
    """Removes the xref of a Resource, whose Versions the request now creates (ENT-136)."""
    assert resource.xref is not None, "only a pointer can be released"
    target = changes.find(resource.xref)
    shown_epoch = target.epoch if target is not None and "xref" not in target.attributes["meta"] else 0
    resource.meta.become_ordinary(shown_epoch)
    resource.xref = None
    resource.membership_changed = resource.needs_completion = True


def extra_xref_attribute(resource: ResourceDraft, name: str) -> Problem:
    """The problem of a member that a Resource with an xref cannot have."""
    return ExtraXrefAttribute(resource.xid, name=name, singular=resource.type.singular)


def check_no_xref(resource: ResourceDraft, name: str = "versions") -> None:
    """Raises: ExtraXrefAttribute for a write through an xref (ENT-135)."""
    if resource.xref is not None:
        raise extra_xref_attribute(resource, name)


def is_of_same_type(changes: ChangeSet, resource: ResourceDraft, pointer: str) -> bool:
    """Whether a Resource and its xref's target have the same type; two equal definitions are two types (ENT-130)."""
    plural, _, type, _ = xids.segments(pointer)
    group = changes.model.groups.get(plural)
    return group is not None and type in group.resources and group.resources[type].origin == resource.type.origin


def _parse_target(changes: ChangeSet, resource: ResourceDraft, pointer: Json) -> str:
    """The xid of another Resource of the same type, which need not exist (ENT-130)."""
    if not isinstance(pointer, str):
        raise MalformedXref(xref=pointer, error_detail="it has to be a string")
    try:
        targets.check_xref(pointer, resource.type.meta.types)
    except InvalidXref as invalid_xref:
        raise MalformedXref(xref=pointer, error_detail=invalid_xref.detail) from None
    if not is_of_same_type(changes, resource, pointer):
        raise MalformedXref(xref=pointer, error_detail="it names a Resource of another type")
    if xids.stream(pointer) == xids.stream(resource.xid):
        raise MalformedXref(xref=pointer, error_detail="a Resource cannot refer to itself")
    return pointer


def _target_names(changes: ChangeSet, xid: str) -> frozenset[str]:
    target = changes.find(xid)
    attributes: Mapping[str, Any] = target.attributes if target is not None else {}
    return frozenset(attributes.keys() - {"meta", "versionscount"})
