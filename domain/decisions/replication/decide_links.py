"""Decides commands about links: at most one event, and the secret values that it stores or destroys (LEG-901)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from annals.domain.access.roles import Role
from annals.domain.decisions.commands import ControlLink, DeleteLink, LinkCommand, WriteLink
from annals.domain.decisions.world import Context, Decision, Secret, World, changed_members, event_members
from annals.domain.errors.http_errors import Forbidden, InvalidLink
from annals.domain.errors.problems import NotFound
from annals.domain.registry.entities import Entity
from annals.domain.registry.events import EntityCreated, EntityDeleted, EntityEvent, EntityUpdated
from annals.domain.replication.link import KAFKA, TYPE, Link
from annals.domain.replication.scope import LinkScope

#: The attributes of a link that cannot change, because its copies came from this source.
_FIXED_MEMBERS: Final = ("url", "dialect", "mode", "remote")


def decide_link(command: LinkCommand, world: World, context: Context) -> Decision:
    """The event of a command, if it changes anything. Raises: NotFound, InvalidLink, Forbidden."""
    if context.role is not Role.ADMIN:
        raise Forbidden(caller=context.caller.name)
    match command:
        case WriteLink(is_new=True):
            return _create_link(command, world, context)
        case WriteLink():
            return _replace_link(command, world, context)
        case DeleteLink():
            return _delete_link(command, world, context)
        case _:
            return _control_link(command, world, context)


def links_overlap(first: Link, other: Link) -> bool:
    """Whether two links would both deliver whole interactions of the same Groups or of the same registry."""
    if not (first.follows_log and other.follows_log) or first.is_promoted or other.is_promoted:
        return False
    return first.url == other.url or first.scope.overlaps(other.scope)


def _create_link(command: WriteLink, world: World, context: Context) -> Decision:
    if (existing := world.get(command.xid)) is not None:
        raise InvalidLink.at_pointer("exists", "/id", f"the link {existing.id} exists already")
    names, secret_changes = _store_secrets(command, {}, world, context)
    facts = event_members(command.xid, TYPE, 1, world, context)
    created = EntityCreated(attributes=dict(command.attributes), private=_private_members(names), **facts)
    return _decision_of_event(created, secret_changes, world)


def _replace_link(command: WriteLink, world: World, context: Context) -> Decision:
    entity = _existing_link(command.xid, world)
    stored = Link.from_entity(entity, entity.position)
    for name in _FIXED_MEMBERS:
        if stored.attributes.get(name) != command.attributes.get(name):
            raise InvalidLink.at_pointer("fixed", f"/{name}", "it cannot change; create another link")
    _check_narrower(stored, command)
    names, secret_changes = _store_secrets(command, stored.secrets, world, context)
    changed = changed_members(entity.attributes, command.attributes, secret_changes)
    if not changed:
        return Decision((), {}, (command.xid,))
    kept = {name: value for name, value in entity.private.items() if name != "secrets"}
    event = EntityUpdated(
        attributes=dict(command.attributes),
        private=kept | _private_members(names),
        born=entity.born,
        changed=changed,
        **event_members(entity.xid, TYPE, entity.epoch + 1, world, context),
    )
    return _decision_of_event(event, secret_changes, world)


def _check_narrower(stored: Link, command: WriteLink) -> None:
    """Raises: InvalidLink for a link to a topic whose scope may become wider.

    A topic has no current state to fetch, and interactions that are already recorded are not recorded again.
    """
    scope = LinkScope.from_members(command.attributes["scope"])
    if stored.dialect != KAFKA or stored.scope.is_whole or command.attributes["scope"] == stored.attributes["scope"]:
        return
    if scope.is_whole or scope.group_filter is not None or not all(map(stored.scope.has, scope.groups)):
        reason = "the scope of a link to a topic cannot become wider; follow the log over HTTP instead"
        raise InvalidLink.at_pointer("fixed", "/scope", reason)


def _store_secrets(
    command: WriteLink, stored: Mapping[str, str], world: World, context: Context
) -> tuple[dict[str, str], list[Secret]]:
    """References by name, and the secrets to store or destroy.

    A secret that is not given again stays for the same credential.
    """
    names: dict[str, str] = {}
    secret_changes: list[Secret] = []
    entity = world.get(command.xid)
    is_same_credential = entity is not None and entity.attributes.get("credential") == command.attributes.get(
        "credential"
    )
    for name, reference in stored.items():
        stored_secret, value = Secret(reference, command.xid, name), command.secrets.get(name)
        if world.secret(stored_secret) == value if value is not None else is_same_credential:
            names[name] = reference
        else:
            secret_changes.append(stored_secret)
    for number, (name, value) in enumerate(command.secrets.items()):
        if name not in names:
            names[name] = f"{context.xregcorrelationid}.{number}"
            secret_changes.append(Secret(names[name], command.xid, name, value))
    return names, secret_changes


def _delete_link(command: DeleteLink, world: World, context: Context) -> Decision:
    """The copies of a deleted link stay, and become writable (LEG-909)."""
    entity = _existing_link(command.xid, world)
    secrets = Link.from_entity(entity, entity.position).secrets
    event = EntityDeleted(attributes={}, private={}, **event_members(entity.xid, TYPE, entity.epoch, world, context))
    destroyed_secrets = tuple(Secret(reference, entity.xid, name) for name, reference in secrets.items())
    return Decision((event,), {}, (event.xid,), secrets=destroyed_secrets)


def _control_link(command: ControlLink, world: World, context: Context) -> Decision:
    """Applies an administrator's control action to a link.

    After a promotion the link delivers nothing, and its copies belong to this registry.
    """
    entity = _existing_link(command.xid, world)
    link = Link.from_entity(entity, entity.position)
    is_done = {"promote": link.is_promoted, "pause": not link.is_enabled, "resume": link.is_enabled}
    if is_done.get(command.name, link.is_promoted):
        return Decision((), {}, (entity.xid,))
    if link.is_promoted:
        raise InvalidLink.at_pointer(
            "promoted", "/enabled", "its copies belong to this registry now; create another link"
        )
    enabled = {"promote": False, "pause": False, "resume": True}.get(command.name, link.is_enabled)
    private = {"promoted": True} if command.name == "promote" else {}
    event = EntityUpdated(
        attributes={**entity.attributes, "enabled": enabled},
        private=entity.private | private,
        born=entity.born,
        changed=("enabled",) if enabled != link.is_enabled else (),
        **event_members(entity.xid, TYPE, entity.epoch + 1, world, context),
    )
    return Decision((event,), {}, (event.xid,))


def _existing_link(xid: str, world: World) -> Entity:
    entity = world.get(xid)
    if entity is None or entity.xid != xid:
        raise NotFound(xid)
    return entity


def _decision_of_event(event: EntityEvent, secret_changes: list[Secret], world: World) -> Decision:
    """The decision of an event. Raises: InvalidLink if the link overlaps another one.

    No two links deliver whole interactions of the same Groups or of the same registry. Ids of interactions are unique,
    and it would be unknown which link an interaction belongs to.
    """
    link = Link.from_entity(Entity(event.xid, event.type, event.epoch, event.attributes, event.private), 0)
    for other in world.links:
        if other.xid != link.xid and links_overlap(link, other):
            raise InvalidLink.at_pointer("overlap", "/scope", f"the link {other.id} copies a part of this already")
    return Decision((event,), {}, (event.xid,), secrets=tuple(secret_changes))


def _private_members(names: Mapping[str, str]) -> dict[str, Any]:
    return {"secrets": dict(names)} if names else {}
