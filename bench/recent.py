"""The registry as decisions see it, in memory that does not grow with the log: what is named no more is forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from domain import xid as xids
from domain.checks import Question, Verdicts
from domain.compat.published import Publications
from domain.compat.remembered import Remembered
from domain.entities import Entity
from domain.events import EntityEvent
from domain.evolve import evolve
from domain.links.link import Link
from domain.model import Model
from domain.world import Compiled, Difference, Secret

#: What the state hash has of an entity that does not live.
_NONE: Final = b""


class RecentWorld:
    """A World whose documents are all good ones of their formats, where no Resource stands for another, and no Version
    is ever pruned.

    live: how many entities are remembered. What a history never asks for is refused, because an answer made up would
    give another log than a registry's.
    """

    def __init__(self) -> None:
        self.live = 0
        self._collections: dict[str, dict[str, Entity]] = {}
        self._known: dict[str, tuple[int, bytes]] = {}
        self._model = Compiled()

    def take(self, event: EntityEvent, position: int, hash: bytes) -> None:
        """Takes in the next event. hash: of the entity that it leaves, empty for none."""
        stream = event.stream
        self._known[stream] = (event.revision, hash)
        members = self._collections.setdefault(_collection(stream), {})
        self.live -= members.pop(stream, None) is not None
        if (entity := evolve(event, position)) is not None:
            members[stream] = entity
            self.live += 1

    def hash(self, xid: str) -> bytes:
        """Of the entity in a stream; empty where none lives."""
        return self._known.get(xids.stream(xid), (0, _NONE))[1]

    def forget(self, xid: str) -> None:
        """Lets go of a Group with all that is in it and ever was: from now on nobody may name it."""
        stream = xids.stream(xid)
        below = f"{stream}/"
        for collection in [name for name in self._collections if name.startswith(below)]:
            self.live -= len(self._collections.pop(collection))
        self.live -= self._collections[_collection(stream)].pop(stream, None) is not None
        for name in [name for name in self._known if name == stream or name.startswith(below)]:
            del self._known[name]

    # --- as World has it -----------------------------------------------------------------------------------------

    @property
    def model(self) -> Model:
        return self._model.of(self.get(xids.MODEL))

    def prefetch(self, names: Iterable[str]) -> None:
        pass

    def get(self, xid: str) -> Entity | None:
        stream = xids.stream(xid)
        return self._collections.get(_collection(stream), {}).get(stream)

    def revision(self, xid: str) -> int:
        return self._known.get(xids.stream(xid), (0, _NONE))[0]

    def members(self, collection: str) -> Sequence[Entity]:
        found = self._collections.get(xids.stream(collection), {})
        return [found[stream] for stream in sorted(found)]

    def count(self, collection: str) -> int:
        return len(self._collections.get(xids.stream(collection), {}))

    def subtree(self, xid: str) -> Iterator[Entity]:
        below = f"{xids.stream(xid)}/"
        found = [each for name, each in self._collections.items() if name.startswith(below)]
        named = sorted((xids.tree_key(stream), entity) for members in found for stream, entity in members.items())
        return (entity for _, entity in named)

    def sources(self, xid: str) -> Sequence[str]:
        return ()

    def verdicts(self, questions: frozenset[Question], documents: Mapping[str, bytes]) -> Verdicts:
        return dict.fromkeys(questions, ())

    def of_type(self, type: str) -> Iterator[Entity]:
        return iter(())  # asked when a model comes, and here that is before all else

    def differences(self, xid: str, position: int) -> Iterator[Difference]:
        raise LookupError("no history restores anything")

    def document(self, sha256: str) -> bytes:
        raise LookupError("no history reads a document")

    @property
    def published(self) -> Publications:
        return Remembered(())

    @property
    def links(self) -> Sequence[Link]:
        return ()

    def secret(self, secret: Secret) -> str | None:
        raise LookupError("no history has secrets")


def _collection(stream: str) -> str:
    return stream.rpartition("/")[0]
