"""Whether a caller may execute a command, by the caller's roles at the entities that the command names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from annals.domain.access.roles import RANK, Caller, Role
from annals.domain.confluent.commands import DeleteContext, DeleteSchemas, RegisterSchema, WriteSettings
from annals.domain.confluent.import_commands import DeleteImportedVersions, ImportSubject
from annals.domain.decisions.commands import (
    AccessCommand,
    ControlSubscription,
    DeleteEntities,
    DeleteSubscription,
    Restore,
    SubmittedCommand,
    WriteMethod,
    WriteSubscription,
    WriteTree,
)
from annals.domain.values import xid as xids

#: The number of segments of the xid of a Resource.
_RESOURCE_DEPTH: Final = 4


def permitted_role(caller: Caller, command: SubmittedCommand) -> Role | None:
    """The caller's role for a command; None if it may not execute it, or may not see what the command refers to."""
    role = _role_for(caller, command)
    if RANK[role] < RANK[Role.WRITER]:
        return None
    sees_targets = caller.role is not None or all(map(caller.can_read, _xref_targets(command)))
    return role if sees_targets else None


def _role_for(caller: Caller, command: SubmittedCommand) -> Role | None:
    """The lowest of the caller's roles at the entities that a command names."""
    if not caller.groups:
        return caller.role
    if isinstance(command, WriteSubscription | DeleteSubscription | ControlSubscription):
        return caller.subscription_role
    if isinstance(command, AccessCommand):
        return Role.ADMIN if caller.administers_something else None  # of which places, the decision checks
    return min((caller.role_at(xid) for xid in _named_groups(command)), key=RANK.__getitem__)


def _named_groups(command: SubmittedCommand) -> Iterator[str]:
    """The Groups that a command affects; the registry if the command is not limited to named Groups."""
    match command:
        case WriteTree(xid=xids.REGISTRY, method=WriteMethod.POST, tree=tree) if tree:
            yield from (f"/{plural}/{id}" for plural, members in tree.items() for id in _member_ids(members))
        case WriteTree(xid=xid, tree=tree) if _is_collection_of_groups(xid) and tree:
            yield from (f"{xid}/{id}" for id in tree)
        case DeleteEntities(xid=xid, targets=targets) if _is_collection_of_groups(xid) and targets:
            yield from (f"{xid}/{id}" for id in targets)
        case WriteTree(xid=xid) | DeleteEntities(xid=xid) | Restore(xid=xid):
            yield xid
        case ImportSubject(xid=xid) | DeleteImportedVersions(xid=xid):
            yield xid
        case RegisterSchema(xid=xid) | DeleteSchemas(xid=xid) | WriteSettings(xid=xid) | DeleteContext(xid=xid):
            yield xid
        case _:
            yield xids.REGISTRY


def _member_ids(members: Any) -> Iterator[str]:
    yield from members if isinstance(members, dict) and members else ("",)


def _is_collection_of_groups(xid: str) -> bool:
    return len(xids.segments(xid)) == 1


def _xref_targets(command: SubmittedCommand) -> Iterator[str]:
    """The Resources that xrefs in a body refer to, because the written Resource shows them."""
    if not isinstance(command, WriteTree):
        return
    segments = xids.segments(command.xid)
    metas = [command.tree] if segments[4:] == ("meta",) else _metas(command.tree, _RESOURCE_DEPTH - len(segments))
    for meta in metas:
        if isinstance(xref := meta.get("xref"), str) and xref.startswith("/"):  # others are refused as malformed
            yield xref


def _metas(value: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    """The metas of the Resources in a body. depth: the number of maps above them."""
    if depth < 0 or not isinstance(value, Mapping):
        return
    if depth == 0:
        if isinstance(meta := value.get("meta"), Mapping):
            yield meta
        return
    for member in value.values():
        yield from _metas(member, depth - 1)
