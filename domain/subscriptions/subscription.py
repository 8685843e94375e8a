"""A subscription as delivery uses it: its state in the log at one position.

Its stream is `/subscriptions/<id>`, its type `subscriptions`. The after-image's attributes are what the owner sees,
with defaults and without secrets; `private` has what only the server needs.
Spec: CloudEvents Subscriptions API, "Subscription object"; SUB-507.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from annals.domain.registry.entities import Entity

TYPE: Final = "subscriptions"


@dataclass(frozen=True, slots=True)
class Subscription:
    """One subscription.

    owner: the name of the caller who created it. position: of its last event. since: of the last event that defined
    where it starts (its creation, or a change of `config.startposition` or `starttime`). first_position: the first
    position that it delivers. epoch: changes with each update by its owner, not with control actions. is_paused:
    whether no attempt may start. attributes: the public form, with `filters`, `types`, `source`, `sink`, `protocol`,
    `protocolsettings`, `config`. secrets: names of secret values (`sinkcredential.secret`,
    `protocolsettings.headers.x-api-key`, `sink.query`) with the references of their rows. action: the last control
    action, such as `{"name": "replay", "from": 1, "to": 9}`. groups, claims, authenticator, entry: of the credential
    with which the owner last wrote it: the places that it may read without grants, None for the whole registry; the
    words that grants can name; what proved it, and its entry in that list, see `Caller`. The last two are empty for
    none or for a subscription of an older release.
    """

    id: str
    owner: str
    position: int
    since: int
    first_position: int
    epoch: int
    is_paused: bool
    attributes: Mapping[str, Any]
    secrets: Mapping[str, str] = field(default_factory=dict)
    action: Mapping[str, Any] | None = None
    groups: tuple[str, ...] | None = None
    claims: tuple[str, ...] = ()
    authenticator: str = ""
    entry: str = ""

    @classmethod
    def from_entity(cls, entity: Entity, position: int) -> Subscription:
        """The subscription of a live entity in the log. position: of its last event."""
        private = entity.private
        return cls(
            id=entity.id,
            owner=private["owner"],
            position=position,
            since=private["since"],
            first_position=private["starts"],
            epoch=entity.epoch,
            is_paused=private.get("paused", False),
            attributes=entity.attributes,
            secrets=private.get("secrets", {}),
            action=private.get("action"),
            groups=tuple(private["groups"]) if private.get("groups") is not None else None,
            claims=tuple(private.get("claims", ())),
            authenticator=private.get("authenticator", ""),
            entry=private.get("entry", ""),
        )
