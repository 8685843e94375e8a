"""Message definitions as answers show them, and what a path has to name to have some."""

from __future__ import annotations

from typing import Any

from api.definitions import Definitions
from api.paths import Kind, Target, locate
from domain import problems
from domain import xid as xids
from domain.jsontext import loads
from domain.messages.effective import MESSAGEGROUPS, MESSAGES, Effective, References, effective, references
from domain.messages.implied import with_implied
from domain.messages.resolving import Resolved, Unresolved, resolve
from domain.model import ResourceType
from projections.entities.query import View
from projections.messages import StoredMessages

_ONE = frozenset((Kind.RESOURCE, Kind.VERSION))


def place(segments: tuple[str, ...], definitions: Definitions) -> Target:
    """A message, a Version of one, or a Group of messages. Raises: NotFound, BadRequest for anything else."""
    target = locate(segments, definitions.model)
    one = target.kind in _ONE and target.resource is not None and target.resource.plural == MESSAGES
    if not one and not is_group(target):
        raise problems.BadRequest(error_detail=f'"{target.xid}" is neither a message nor a Group that has messages')
    return target


def is_group(target: Target) -> bool:
    """Whether a path names a Group that has messages."""
    return target.kind is Kind.GROUP and target.group is not None and MESSAGES in target.group.resources


def message_of(target: Target, messages: StoredMessages) -> dict[str, Any]:
    """A message, resolved. Raises: NotFound."""
    definition = messages.definition(target.xid)
    if definition is None or target.resource is None:
        raise problems.NotFound(target.xid)
    return _members(target.xid, resolve(definition, messages), target.resource)


def messages_of(target: Target, view: View, messages: StoredMessages) -> dict[str, Any]:
    """The effective messages of a Group, each resolved. Raises: NotFound."""
    found = groups_of(target, view, messages)
    assert target.group is not None, "asked of Groups only"
    type = target.group.resources[MESSAGES]
    members = [_members(each.xid, each.resolved, type) for each in effective(found.groups, messages)]
    return {"xid": target.xid, "messages": members, "unresolved": [_unresolved(each) for each in found.unresolved]}


def effective_of(target: Target, view: View, messages: StoredMessages) -> list[Effective]:
    """The same, for those who match them."""
    return list(effective(groups_of(target, view, messages).groups, messages))


def groups_of(target: Target, view: View, messages: StoredMessages) -> References:
    """Where the messages of a Group are. Raises: NotFound."""
    row = view.entity(target.xid)
    if row is None:
        raise problems.NotFound(target.xid)
    return references(target.xid, loads(row.attributes).get(MESSAGEGROUPS), messages)


def _members(xid: str, resolved: Resolved, type: ResourceType) -> dict[str, Any]:
    """One message in an answer. A cross reference shows what it stands for under its own id."""
    attributes, implied = with_implied(resolved.attributes)
    named = {**attributes, type.singular + "id": xids.segments(xid)[3], "xid": xid}
    shown: dict[str, Any] = {"xid": xid, "message": type.version.order(named), "bases": list(resolved.bases)}
    if implied:
        shown["implied"] = list(implied)
    if resolved.unresolved is not None:
        shown["unresolved"] = _unresolved(resolved.unresolved)
    return shown


def _unresolved(found: Unresolved) -> dict[str, str]:
    return {"uri": found.uri, "reason": found.reason.value}
