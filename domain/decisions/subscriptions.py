"""Decides commands about subscriptions: at most one event, and the secret values that it stores or destroys.

Rules SUB-304, SUB-501 to SUB-509, SUB-911 to SUB-917.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from annals.domain.access.roles import Role
from annals.domain.decisions.commands import (
    ControlSubscription,
    DeleteSubscription,
    SubscriptionCommand,
    WriteSubscription,
)
from annals.domain.decisions.world import Context, Decision, Secret, World, changed_members, event_members
from annals.domain.errors.http_errors import QuotaExceeded
from annals.domain.errors.problems import NotFound
from annals.domain.registry.entities import Entity
from annals.domain.registry.events import EntityCreated, EntityDeleted, EntityEvent, EntityUpdated
from annals.domain.subscriptions import credentials, sink_uris
from annals.domain.subscriptions.error_places import ErrorPlace, invalid_subscription
from annals.domain.subscriptions.protocol_settings import HEADERS_PREFIX, SIGNINGKEY
from annals.domain.subscriptions.subscription import TYPE, Subscription
from annals.domain.subscriptions.subscription_document import QUERY_SUFFIX
from annals.domain.values.json_text import Json

COLLECTION: Final = "/" + TYPE
#: The properties that define where a subscription starts; if they change, it starts again (SUB-502).
_START_MEMBERS: Final = ("startposition", "starttime")
#: The private members with the rights of the credential that last wrote a subscription.
_CREDENTIAL_MEMBERS: Final = ("groups", "claims", "authenticator", "entry")


def decide_subscription(command: SubscriptionCommand, world: World, context: Context) -> Decision:
    """The event of a command, if it changes anything. Raises: NotFound, InvalidSubscription, QuotaExceeded."""
    match command:
        case WriteSubscription(is_new=True):
            return _create_subscription(command, world, context)
        case WriteSubscription():
            return _replace_subscription(command, world, context)
        case DeleteSubscription():
            return _delete_subscription(command, world, context)
        case _:
            return _control_subscription(command, world, context)


def can_see_subscription(owner: str, caller: str, *, is_admin: bool) -> bool:
    """Whether a caller may see a subscription (SUB-911)."""
    return owner == caller or is_admin


def secret_pointer(secret: str) -> str:
    """A JSON Pointer to the member that a secret value belongs to."""
    if secret.startswith(HEADERS_PREFIX):
        return ErrorPlace().child(*HEADERS_PREFIX.strip(".").split("."), secret.removeprefix(HEADERS_PREFIX)).pointer
    return ErrorPlace().child(*secret.removesuffix(QUERY_SUFFIX).split(".")).pointer


@dataclass(slots=True)
class _SecretChanges:
    """The secret values of an update: references by name, and the secrets to store or destroy."""

    xid: str
    id: str
    names: dict[str, str] = field(default_factory=dict)
    applied: list[Secret] = field(default_factory=list)

    def put(self, name: str, value: str) -> None:
        """Adds a value under a new reference, which contains the interaction's id and is therefore unique."""
        self.names[name] = f"{self.id}.{len(self.names)}"
        self.applied.append(Secret(self.names[name], self.xid, name, value))

    def remove(self, name: str, reference: str) -> None:
        self.applied.append(Secret(reference, self.xid, name))


def _create_subscription(command: WriteSubscription, world: World, context: Context) -> Decision:
    _check_quota(command, world, context)
    if command.missing_secrets:
        name = min(command.missing_secrets)
        raise invalid_subscription("required", secret_pointer(name), "it is needed")
    _check_not_expired(command, context)
    secrets = _SecretChanges(command.xid, context.xregcorrelationid)
    for name, value in command.secrets.items():
        secrets.put(name, value)
    position = context.position + 1
    private = {
        "owner": context.caller.name,
        "since": position,
        "starts": _first_position(command, position),
        **({"secrets": secrets.names} if secrets.names else {}),
        **_credential_members(command, context),
    }
    created = EntityCreated(
        attributes=dict(command.attributes), private=private, **event_members(command.xid, TYPE, 1, world, context)
    )
    return _decision_of_event(created, secrets)


def _replace_subscription(command: WriteSubscription, world: World, context: Context) -> Decision:
    entity = _existing_subscription(command.xid, world, context)
    stored = Subscription.from_entity(entity, entity.position)
    secrets = _secrets_after_update(command, stored, world, context)
    private = {name: value for name, value in entity.private.items() if name not in ("secrets", "action")}
    if secrets.names:
        private["secrets"] = secrets.names
    if context.caller.name == stored.owner:
        kept = {name: value for name, value in private.items() if name not in _CREDENTIAL_MEMBERS}
        private = kept | _credential_members(command, context)
    changed = changed_members(entity.attributes, command.attributes, secrets.applied)
    if not changed and all(private.get(name) == entity.private.get(name) for name in _CREDENTIAL_MEMBERS):
        return Decision((), {}, (command.xid,))
    position = context.position + 1
    if _start_values(entity.attributes) != _start_values(command.attributes):
        private |= {"since": position, "starts": _first_position(command, position)}
    event = EntityUpdated(
        attributes=dict(command.attributes),
        private=private,
        changed=changed,
        born=entity.born,
        **event_members(command.xid, TYPE, entity.epoch + bool(changed), world, context),
    )
    return _decision_of_event(event, secrets)


def _credential_members(command: WriteSubscription, context: Context) -> dict[str, Any]:
    """The private members with the rights of the credential that writes a subscription."""
    groups = None if command.groups is None else list(command.groups)
    # A session has the rights of the credential that began it, and ends with it.
    authenticator = context.caller.began_by or context.caller.authenticator
    members = {
        "groups": groups,
        "claims": list(command.claims) or None,
        "authenticator": authenticator or None,
        "entry": context.caller.entry or None,
    }
    return {name: value for name, value in members.items() if value is not None}


def _delete_subscription(command: DeleteSubscription, world: World, context: Context) -> Decision:
    entity = _existing_subscription(command.xid, world, context)
    secrets = _SecretChanges(entity.xid, "")
    for name, reference in Subscription.from_entity(entity, entity.position).secrets.items():
        secrets.remove(name, reference)
    event = EntityDeleted(attributes={}, private={}, **event_members(command.xid, TYPE, entity.epoch, world, context))
    return _decision_of_event(event, secrets)


def _control_subscription(command: ControlSubscription, world: World, context: Context) -> Decision:
    """The event of an action; none for pausing a paused or resuming a running subscription (SUB-833)."""
    entity = _existing_subscription(command.xid, world, context)
    is_paused = Subscription.from_entity(entity, entity.position).is_paused
    is_without_effect = {"pause": is_paused, "resume": not is_paused and not command.is_stopped}
    if is_without_effect.get(command.name, False):
        return Decision((), {}, (command.xid,))
    arguments = _replay_range(command, context) if command.name == "replay" else command.arguments
    private = entity.private | {"action": {"name": command.name, **arguments, "position": context.position + 1}}
    if command.name in is_without_effect:
        private["paused"] = command.name == "pause"
    event = EntityUpdated(
        attributes=entity.attributes,
        private=private,
        born=entity.born,
        **event_members(command.xid, TYPE, entity.epoch, world, context),
    )
    return _decision_of_event(event, _SecretChanges(entity.xid, ""))


def _existing_subscription(xid: str, world: World, context: Context) -> Entity:
    """An existing subscription that the caller may see. Raises: NotFound."""
    entity = world.get(xid)
    if (
        entity is None
        or entity.xid != xid
        or not can_see_subscription(entity.private["owner"], context.caller.name, is_admin=context.role is Role.ADMIN)
    ):
        raise NotFound(xid)
    return entity


def _check_quota(command: WriteSubscription, world: World, context: Context) -> None:
    """Checks the quota (SUB-912). It counts the caller's subscriptions only if the total reaches the quota."""
    if world.count(COLLECTION) < command.max_owned:
        return
    if sum(entity.private["owner"] == context.caller.name for entity in world.members(COLLECTION)) >= command.max_owned:
        detail = f"a caller has at most {command.max_owned} subscriptions"
        raise QuotaExceeded(error_detail=detail, extensions={"code": "quotaexceeded"})


def _check_not_expired(command: WriteSubscription, context: Context) -> None:
    if credentials.is_expired(command.attributes.get("sinkcredential", {}), context.now):
        raise invalid_subscription("value", f"/sinkcredential/{credentials.EXPIRES}", "the token has expired")


def _secrets_after_update(
    command: WriteSubscription, stored: Subscription, world: World, context: Context
) -> _SecretChanges:
    """The secrets after an update: the given ones, and those that are not given and may stay (SUB-304).

    Raises: InvalidSubscription for a secret that would be sent to another place than before.
    """
    secrets = _SecretChanges(command.xid, context.xregcorrelationid)
    for name, reference in stored.secrets.items():
        stored_secret = Secret(reference, command.xid, name)
        new_value = command.secrets.get(name)
        if new_value is not None:
            if world.secret(stored_secret) == new_value:
                secrets.names[name] = reference
            else:
                secrets.remove(name, reference)
        elif _is_retained(stored_secret, command, stored, world, context):
            _check_same_sink(name, command, stored)
            secrets.names[name] = reference
        else:
            secrets.remove(name, reference)
    for name in sorted(command.missing_secrets - secrets.names.keys()):
        raise invalid_subscription("secretrequired", secret_pointer(name), "it is required, because none is stored")
    for name in command.secrets.keys() - secrets.names.keys():
        secrets.put(name, command.secrets[name])
    return secrets


def _is_retained(
    secret: Secret, command: WriteSubscription, stored: Subscription, world: World, context: Context
) -> bool:
    """Whether a secret stays that a document lacks, because responses did not show it to the document's author."""
    name, settings = secret.name, command.attributes["protocolsettings"]
    if name in command.missing_secrets:
        return True
    if name in command.dropped_secrets:
        return False
    if name.startswith(HEADERS_PREFIX):
        return "headers" in settings
    if name.endswith(QUERY_SUFFIX):
        path = name.removesuffix(QUERY_SUFFIX)
        was_shown = context.caller.name == stored.owner and world.secret(secret) is not None
        return not was_shown and _value_at(command.attributes, path) == _value_at(stored.attributes, path)
    return name == SIGNINGKEY and command.attributes["protocol"] == sink_uris.HTTP


def _check_same_sink(name: str, command: WriteSubscription, stored: Subscription) -> None:
    """Checks that a secret is sent to the same place as before (SUB-304). Raises: InvalidSubscription."""
    protocol, sink = stored.attributes["protocol"], stored.attributes["sink"]
    is_same_sink = command.secret_binding == (
        protocol,
        *sink_uris.parse_sink(sink, protocol, ErrorPlace("/sink")).secret_binding,
    )
    if is_same_sink and name.startswith(credentials.PREFIX):
        previous_credential, new_credential = (
            each.get("sinkcredential", {}) for each in (stored.attributes, command.attributes)
        )
        is_same_sink = all(previous_credential.get(each) == new_credential.get(each) for each in credentials.BINDING)
    if not is_same_sink:
        raise invalid_subscription(
            "secretrequired", secret_pointer(name), "it is required again, because the sink or its credential changed"
        )


def _replay_range(command: ControlSubscription, context: Context) -> dict[str, Json]:
    """The range of a replay (SUB-834). Raises: InvalidSubscription."""
    log_end = context.position
    first, last = command.arguments["from"], command.arguments.get("to", log_end)
    for pointer, position in (("/fromposition", first), ("/toposition", last)):
        if position > log_end:
            raise invalid_subscription("value", pointer, f"the log ends at position {log_end}")
    if last < first:
        raise invalid_subscription("value", "/toposition", "it is before the first position of the range")
    return {**command.arguments, "from": first, "to": last}


def _first_position(command: WriteSubscription, position: int) -> int:
    """The first position that the subscription delivers. position: of the event that defines it (SUB-804).

    Raises: InvalidSubscription for a position beyond the end of the log: the events until then would be left out.
    """
    if command.starttime is not None:
        return command.starttime
    start_position = command.attributes["config"]["startposition"]
    first_position: int = {"latest": position + 1, "earliest": 1}.get(start_position) or max(1, start_position)
    if start_position != "latest" and first_position > position:
        raise invalid_subscription("value", "/config/startposition", f"the log ends at position {position - 1}")
    return first_position


def _start_values(attributes: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(attributes["config"].get(name) for name in _START_MEMBERS)


def _value_at(attributes: Mapping[str, Any], path: str) -> Any:
    """The value at a path of names with dots; None if there is none."""
    value: Any = attributes
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _decision_of_event(event: EntityEvent, secrets: _SecretChanges) -> Decision:
    return Decision((event,), {}, (event.xid,), secrets=tuple(secrets.applied))
