"""StreamHead: the end of a stream, as decisions and projections need it."""

from __future__ import annotations

from typing import Final

from annals.domain.registry.entities import Entity
from annals.domain.registry.events import EntityEvent
from annals.domain.registry.evolve import evolve


class StreamHead:
    """The end of a stream.

    hash: of the live entity's image, else empty; event, position: the last event of a live entity.
    """

    __slots__ = ("_entity", "event", "hash", "position", "revision")

    def __init__(self, revision: int, hash: bytes, event: EntityEvent | None = None, position: int = 0) -> None:
        self.revision = revision
        self.hash = hash
        self.event = event
        self.position = position
        self._entity: Entity | None = None

    @property
    def entity(self) -> Entity | None:
        """The live entity, else None.

        Built at the first access, because entities of an import are rarely read again.
        """
        if self._entity is None and self.event is not None:
            self._entity = evolve(self.event, self.position)
        return self._entity


#: A stream without events.
NO_STREAM_HEAD: Final = StreamHead(0, b"")
