"""A link as replication uses it: its state in the log at one position.

Its stream is `/-/links/<id>`. The after-image's attributes are what administrators see, with defaults and without
secrets; `private` has what only the server needs. Links are outside the registry's tree: they are in none of its hashes
and in no replica. Rule LEG-901.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from annals.domain.registry.entities import Entity
from annals.domain.replication.scope import LinkScope
from annals.domain.replication.xid_mapping import XidMapping, remove_authority_mark

#: A name that no type of the model can have.
TYPE: Final = "-.links"
COLLECTION: Final = "/-/links"

#: The APIs that a link can use: our log over HTTP or as a Kafka topic, the standard API, the two legacy ones.
LOG: Final = "log"
KAFKA: Final = "kafka"
XREGISTRY: Final = "xregistry"
SCHEMAREGISTRY: Final = "schemaregistry"
MESSAGECATALOG: Final = "messagecatalog"

PULL: Final = "pull"
EVENTS: Final = "events"
PUSH: Final = "push"
RECEIVE: Final = "receive"
#: The modes of each dialect: fetch periodically, fetch when an event arrives, write to the other registry, accept its
#: writes.
MODES: Final[Mapping[str, tuple[str, ...]]] = {
    LOG: (PULL, EVENTS, PUSH, RECEIVE),
    KAFKA: (PULL,),
    XREGISTRY: (PULL, PUSH),
    SCHEMAREGISTRY: (PULL, EVENTS, PUSH),
    MESSAGECATALOG: (PULL, EVENTS, PUSH),
}


@dataclass(frozen=True, slots=True)
class Link:
    """One link.

    position: of its last event. epoch: changes with each update. url: root of the other registry, or of its legacy API;
    `kafka://host:port/topic` for a topic. scope: the replicated part. names: local Group xids by those of the other
    registry. interval: seconds between checks of the other registry. conflicts: `rename` or `skip`. is_enabled: False
    while it is paused.
    remote: id of the link at the other end that receives what this one pushes. is_promoted: whether its copies now
    belong to this registry. attributes: the public form. secrets: references by name.
    """

    id: str
    position: int
    epoch: int
    url: str
    dialect: str
    mode: str
    scope: LinkScope
    names: Mapping[str, str]
    interval: float
    conflicts: str
    is_enabled: bool
    remote: str
    is_promoted: bool
    attributes: Mapping[str, Any]
    secrets: Mapping[str, str] = field(default_factory=dict)

    @property
    def xid(self) -> str:
        """The xid of its stream."""
        return f"{COLLECTION}/{self.id}"

    @property
    def follows_log(self) -> bool:
        """Whether it delivers whole interactions, under their own ids."""
        return self.dialect in (LOG, KAFKA) and self.mode != PUSH

    @property
    def is_legacy(self) -> bool:
        """Whether it uses one of the two legacy APIs of the other registry."""
        return self.dialect in (SCHEMAREGISTRY, MESSAGECATALOG)

    @property
    def is_inbound(self) -> bool:
        """Whether it writes to this registry."""
        return self.mode != PUSH

    def has_copy(self, xid: str, mark: str | None) -> bool:
        """Whether an entity of this registry is a copy that this link maintains. mark: the link whose copy it became.

        A copy over the standard API that has left the scope is not maintained any more; over the legacy APIs it goes.
        """
        if self.follows_log:
            return self.scope.has(xid)
        if mark != self.id or self.dialect != XREGISTRY:
            return mark == self.id
        remote_xid = self.mapping.to_remote(xid)
        return self.scope.has(remote_xid) or self.scope.has(remove_authority_mark(remote_xid))

    @property
    def mapping(self) -> XidMapping:
        """The names of its Groups in both registries."""
        return XidMapping(self.names)

    @classmethod
    def from_entity(cls, entity: Entity, position: int) -> Link:
        """The link of a live entity in the log. position: of its last event."""
        attributes = entity.attributes
        return cls(
            id=entity.id,
            position=position,
            epoch=entity.epoch,
            url=attributes["url"],
            dialect=attributes["dialect"],
            mode=attributes["mode"],
            scope=LinkScope.from_members(attributes["scope"]),
            names=attributes.get("names", {}),
            interval=attributes["interval"],
            conflicts=attributes["conflicts"],
            is_enabled=attributes["enabled"],
            remote=attributes.get("remote", entity.id),
            is_promoted=entity.private.get("promoted", False),
            attributes=attributes,
            secrets=entity.private.get("secrets", {}),
        )
