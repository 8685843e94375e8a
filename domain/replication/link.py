"""A link as those see it who replicate: what the log says of it, at one position.

Its stream is `/-/links/<id>`. The after-image's attributes are what administrators see, defaults filled in and secrets
left out; `private` has what only the server needs. Links are apart from the registry's tree: in none of its hashes and
in no replica. Rule LEG-901.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from domain.registry.entities import Entity
from domain.replication.scope import LinkScope

#: What no type of the model can be called.
TYPE: Final = "-.links"
COLLECTION: Final = "/-/links"

#: The APIs that a link can speak: our log over HTTP or as a Kafka topic, the standard API, the two older ones.
LOG: Final = "log"
KAFKA: Final = "kafka"
XREGISTRY: Final = "xregistry"
SCHEMAREGISTRY: Final = "schemaregistry"
MESSAGECATALOG: Final = "messagecatalog"

PULL: Final = "pull"
EVENTS: Final = "events"
PUSH: Final = "push"
RECEIVE: Final = "receive"
#: What each dialect can do: fetch by itself, be told by events and then fetch, write to the other registry, be written
#: to by it.
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

    position: of its last event. epoch: changes with each update. url: root of the other registry, or of its older API;
    `kafka://host:port/topic` for a topic. scope: what of it. names: local Group xids by those of the other registry.
    interval: seconds between looks at the other registry. conflicts: `rename` or `skip`. enabled: False while it rests.
    remote: id of the link at the other end that takes in what this one pushes. promoted: whether what it brought is
    this registry's own from then on. attributes: the public form. secrets: references by name.
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
    enabled: bool
    remote: str
    promoted: bool
    attributes: Mapping[str, Any]
    secrets: Mapping[str, str] = field(default_factory=dict)

    @property
    def xid(self) -> str:
        """The xid of its stream."""
        return f"{COLLECTION}/{self.id}"

    @property
    def follows_log(self) -> bool:
        """Whether whole interactions come in over it, under their own ids."""
        return self.dialect in (LOG, KAFKA) and self.mode != PUSH

    @property
    def is_older(self) -> bool:
        """Whether the other registry is reached through one of the two older APIs."""
        return self.dialect in (SCHEMAREGISTRY, MESSAGECATALOG)

    @property
    def inbound(self) -> bool:
        """Whether it writes to this registry."""
        return self.mode != PUSH

    @classmethod
    def of(cls, entity: Entity, position: int) -> Link:
        """The link that a living entity of the log is. position: of its last event."""
        shown = entity.attributes
        return cls(
            id=entity.id,
            position=position,
            epoch=entity.epoch,
            url=shown["url"],
            dialect=shown["dialect"],
            mode=shown["mode"],
            scope=LinkScope.of(shown["scope"]),
            names=shown.get("names", {}),
            interval=shown["interval"],
            conflicts=shown["conflicts"],
            enabled=shown["enabled"],
            remote=shown.get("remote", entity.id),
            promoted=entity.private.get("promoted", False),
            attributes=shown,
            secrets=entity.private.get("secrets", {}),
        )
