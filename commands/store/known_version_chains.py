"""The Versions of Resources at `maxversions`, which a transaction knows without reading them."""

from __future__ import annotations

from annals.domain.decisions.version_chains import VersionChains, broken_chain
from annals.domain.registry.events import EntityEvent


class KnownVersionChains:
    """The ids of Versions by the stream of their Resource, see `World.version_chain`. start: those before."""

    def __init__(self, start: VersionChains) -> None:
        self._start = start
        self._changed: dict[str, tuple[str, ...] | None] = {}  # None for one that is no longer known
        self._replaced: dict[str, tuple[str, ...] | None] = {}  # since the last `release`

    def find(self, stream: str) -> tuple[str, ...] | None:
        """The ids; None if they are not known."""
        return self._changed[stream] if stream in self._changed else self._start.get(stream)

    def add(self, version_chains: VersionChains) -> None:
        """Adds those that a decision leaves behind, whose events have been added."""
        for stream, ids in version_chains.items():
            self._set(stream, ids)

    def add_event(self, event: EntityEvent) -> None:
        """Forgets the one that an event may break."""
        if (self._start or self._changed) and (stream := broken_chain(event)) and self.find(stream) is not None:
            self._set(stream, None)

    def release(self) -> None:
        """Keeps the changes, whatever `roll_back` undoes later."""
        self._replaced.clear()

    def roll_back(self) -> None:
        """Undoes the changes since the last `release`."""
        self._changed |= self._replaced
        self._replaced.clear()

    def all(self) -> VersionChains:
        """All that are known. Cost: a copy, if any has changed."""
        if not self._changed:
            return self._start
        return {stream: ids for stream, ids in {**self._start, **self._changed}.items() if ids is not None}

    def _set(self, stream: str, ids: tuple[str, ...] | None) -> None:
        self._replaced.setdefault(stream, self.find(stream))
        self._changed[stream] = ids
