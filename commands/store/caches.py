"""What a store remembers from one write transaction to the next: the model, the links, some heads and Versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from annals.commands.store.stream_head import StreamHead
from annals.domain.decisions.version_chains import VersionChains
from annals.domain.model import Model
from annals.domain.replication.link import Link

#: The maximum number of cached heads.
MAX_CACHED_HEADS: Final = 256
#: The maximum number of cached ids of Versions.
MAX_CACHED_VERSIONS: Final = 50_000
#: The number of separators in the tree key of a Group.
_GROUP_DEPTH: Final = 2


class ModelCache:
    """The model compiled last, keyed by the hash of its entity, so a model of an undone change is never used."""

    def __init__(self) -> None:
        self._models: tuple[bytes, Model] | None = None

    @property
    def last(self) -> Model | None:
        """The cached model."""
        return self._models[1] if self._models else None

    def find(self, hash: bytes) -> Model | None:
        """The compiled model for an entity hash, if it is the cached one."""
        cached = self._models
        return cached[1] if cached and cached[0] == hash else None

    def put(self, hash: bytes, model: Model) -> Model:
        """Caches a model in place of the previous one."""
        self._models = hash, model
        return model


class LinkCache:
    """The links read last, keyed by the position of the newest event of any link.

    Only committed links belong here: an undone command frees its positions, and another event may get the same one.
    """

    def __init__(self) -> None:
        self._links: tuple[int, tuple[Link, ...]] = (0, ())

    def find(self, position: int) -> tuple[Link, ...] | None:
        """The links as of a position, if they are the cached ones."""
        return self._links[1] if self._links[0] == position else None

    def put(self, position: int, current_links: tuple[Link, ...]) -> tuple[Link, ...]:
        """Caches links in place of the previous ones."""
        self._links = position, current_links
        return current_links


class KnownState(NamedTuple):
    """What a write transaction starts with and needs not read again.

    heads: those that nearly every command reads, of the registry, of its configuration and of Groups, by tree key.
    version_chains: the Versions of Resources that are at `maxversions`, oldest first, by the stream of the Resource.
    highest_schema_id: None if it was not needed yet.
    """

    heads: Mapping[str, StreamHead] = {}
    version_chains: VersionChains = {}
    highest_schema_id: int | None = None


class KnownStateCache:
    """The state at the end of the log, which the chain hash of the last interaction identifies.

    It is valid as long as no other process writes.
    """

    def __init__(self) -> None:
        self._chain = b""
        self._state = KnownState()

    def find(self, chain: bytes) -> KnownState:
        """The state at the end of a log; empty if the cached one belongs to another one."""
        return self._state if self._chain == chain else KnownState()

    def put(self, chain: bytes, state: KnownState) -> None:
        """Caches a committed state in place of the previous one; of heads those that are worth it, and not too many."""
        heads = {key: head for key, head in state.heads.items() if key.count("!") <= _GROUP_DEPTH}
        has_few_versions = sum(map(len, state.version_chains.values())) <= MAX_CACHED_VERSIONS
        self._state = state._replace(
            heads=heads if len(heads) <= MAX_CACHED_HEADS else {},
            version_chains=state.version_chains if has_few_versions else {},
        )
        self._chain = chain
