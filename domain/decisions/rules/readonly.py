"""Read-only Resources: if an admin sets `meta.readonly`, no caller can write to the Resource or its parts (ENT-140)."""

from __future__ import annotations

from annals.domain.access.roles import Role
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.drafts import ResourceDraft
from annals.domain.errors.problems import BadFlag, InvalidAttribute, Readonly
from annals.domain.registry.entities import Entity
from annals.domain.values.json_text import Json


def is_readonly(entity: Entity | None) -> bool:
    """Whether a Resource is read-only; a missing one is not."""
    return entity is not None and bool(entity.attributes["meta"].get("readonly"))


def check_writable(changes: ChangeSet, xid: str, ignore: frozenset[str]) -> None:
    """Raises: Readonly for a request to one read-only Resource, BadFlag if the request says to ignore that (C-9)."""
    if is_readonly(changes.find(xid)):
        raise BadFlag(flag="ignore") if "readonly" in ignore else Readonly(xid)


def is_skipped(changes: ChangeSet, xid: str, ignore: frozenset[str]) -> bool:
    """Whether an entry of a map is skipped because it is read-only. Raises: Readonly without `ignore=readonly`."""
    if not is_readonly(changes.find(xid)):
        return False
    if "readonly" not in ignore:
        raise Readonly(xid)
    return True


def sets_readonly(changes: ChangeSet, meta: Json) -> bool:
    """Whether a write of a meta sets `readonly`, which only an admin may do, also on a read-only Resource."""
    return changes.context.role is Role.ADMIN and isinstance(meta, dict) and "readonly" in meta


def set_readonly(changes: ChangeSet, resource: ResourceDraft, value: Json, patch: bool) -> None:
    """Sets `readonly` if an admin gives it; other callers' values are ignored.

    A replacement without a value resets it.
    """
    if changes.context.role is not Role.ADMIN or (value is None and patch):
        return
    if value is not None and not isinstance(value, bool):
        raise InvalidAttribute(resource.meta.xid, name="readonly", error_detail="it has to be true or false")
    resource.readonly = bool(value)
