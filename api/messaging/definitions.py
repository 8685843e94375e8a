"""Message definitions in responses, and the paths that have message definitions."""

from __future__ import annotations

from itertools import islice
from typing import Any, NamedTuple

from annals.api.http.query_params import invalid_param
from annals.api.registry.definitions import RegistryDefinitions
from annals.api.xregistry.request.paths import PathKind, RequestTarget, resolve_path
from annals.domain.errors import problems
from annals.domain.messaging.effective_messages import (
    MESSAGEGROUPS,
    MESSAGES,
    EffectiveMessage,
    GroupReferences,
    effective_messages,
    group_references,
)
from annals.domain.messaging.implied_values import add_implied_values
from annals.domain.messaging.resolve import ResolvedMessage, UnresolvedReference, resolve_message
from annals.domain.model import ResourceType
from annals.domain.values import xid as xids
from annals.domain.values.json_text import loads
from annals.projections.entities.view import View
from annals.projections.messaging.message_definitions import MessageDefinitions

_ENTITY_KINDS = frozenset((PathKind.RESOURCE, PathKind.VERSION))


def locate_messages(segments: tuple[str, ...], definitions: RegistryDefinitions) -> RequestTarget:
    """The target of a path: a message, a Version of one, or a Group of messages.

    Raises: NotFound; BadRequest for any other path.
    """
    target = resolve_path(segments, definitions.model)
    is_message = target.kind in _ENTITY_KINDS and target.resource is not None and target.resource.plural == MESSAGES
    if not is_message and not is_message_group(target):
        raise problems.BadRequest(error_detail=f'"{target.xid}" is neither a message nor a Group that has messages')
    return target


def is_message_group(target: RequestTarget) -> bool:
    """Whether a target is a Group that has messages."""
    return target.kind is PathKind.GROUP and target.group is not None and MESSAGES in target.group.resources


def resolved_message(target: RequestTarget, messages: MessageDefinitions) -> dict[str, Any]:
    """The response body for a resolved message. Raises: NotFound."""
    definition = messages.definition(target.xid)
    if definition is None or target.resource is None:
        raise problems.NotFound(target.xid)
    return _message_members(target.xid, resolve_message(definition, messages), target.resource)


class MessagePage(NamedTuple):
    """Which of the effective messages of a Group a client asks for.

    limit: how many at most; None for all. after: the xid of the message behind which they begin; empty for the first.
    """

    limit: int | None = None
    after: str = ""


def resolved_messages(
    target: RequestTarget, view: View, messages: MessageDefinitions, page: MessagePage
) -> tuple[dict[str, Any], str | None]:
    """The response body for the effective messages of a Group, each resolved, and the `after` of the next page.

    Raises: NotFound; BadRequest.
    """
    groups = message_groups(target, view, messages)
    assert target.group is not None, "asked of Groups only"
    if page.after and xids.join(*xids.segments(page.after)[:2]) not in groups.groups:
        raise invalid_param("after", f'"{page.after}" is no message of "{target.xid}"')
    found = effective_messages(groups.groups, messages, page.after)
    shown = list(islice(found, page.limit))
    has_more = page.limit is not None and next(found, None) is not None
    type = target.group.resources[MESSAGES]
    document = {
        "xid": target.xid,
        "messages": [_message_members(message.xid, message.resolved, type) for message in shown],
        "unresolved": [_reference_members(message) for message in groups.unresolved],
    }
    return document, shown[-1].xid if has_more else None


def effective_messages_of(target: RequestTarget, view: View, messages: MessageDefinitions) -> list[EffectiveMessage]:
    """The effective messages of a Group, for matching. Raises: NotFound."""
    return list(effective_messages(message_groups(target, view, messages).groups, messages))


def message_groups(target: RequestTarget, view: View, messages: MessageDefinitions) -> GroupReferences:
    """The Groups that have the effective messages of a Group. Raises: NotFound."""
    row = view.entity(target.xid)
    if row is None:
        raise problems.NotFound(target.xid)
    return group_references(target.xid, loads(row.attributes).get(MESSAGEGROUPS), messages)


def _message_members(xid: str, message: ResolvedMessage, type: ResourceType) -> dict[str, Any]:
    """One message in a response. A cross reference shows the attributes of its target under its own id."""
    attributes, implied_names = add_implied_values(message.attributes)
    shown_attributes = {**attributes, type.singular + "id": xids.segments(xid)[3], "xid": xid}
    members: dict[str, Any] = {
        "xid": xid,
        "message": type.version.order(shown_attributes),
        "bases": list(message.bases),
    }
    if implied_names:
        members["implied"] = list(implied_names)
    if message.unresolved is not None:
        members["unresolved"] = _reference_members(message.unresolved)
    return members


def _reference_members(unresolved_reference: UnresolvedReference) -> dict[str, str]:
    return {"uri": unresolved_reference.uri, "reason": unresolved_reference.reason.value}
