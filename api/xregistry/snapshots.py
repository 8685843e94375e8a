"""Snapshots of the past for requests with `asof`: the interaction of a moment, and the registry's definitions then.

A response about the past equals the response that was given then. It adds the time of the moment and the URL of the
present state.
Spec: RFC 7089, "HTTP Framework for Time-Based Access".
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from email.utils import format_datetime
from typing import Final

from annals.api.http.asof import url_without_asof
from annals.api.http.conditional import NO_CACHE
from annals.api.http.request import Request
from annals.api.http.response import Headers, Response
from annals.api.registry.bounded_cache import BoundedCache
from annals.api.registry.definitions import DefinitionsCache, RegistryDefinitions, read_definitions
from annals.commands.store.clock import Clock, parse_time
from annals.commands.store.hashes import Interaction
from annals.projections.entities.view import View
from annals.projections.entities.view_pool import ViewPool
from annals.projections.log.answer_position import note_position
from annals.projections.log.reader import is_position

#: Number of cached snapshots, and of cached past definitions.
CACHE_SIZE: Final = 256
#: A response about a moment that no later event can change is immutable.
IMMUTABLE_CACHE: Final = (b"cache-control", b"max-age=31536000, immutable")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A moment of the past. is_immutable: whether later events cannot change it; a time is open until it has passed."""

    interaction: Interaction
    definitions: RegistryDefinitions
    is_immutable: bool

    @property
    def position(self) -> int:
        """Position of the last event before or at the moment."""
        return self.interaction.last

    def view(self, view: View) -> View:
        """The view as of the moment, on the same connection; the answer in progress shows that moment."""
        note_position(self.position)
        return view.as_of(self.position, self.definitions.positions)

    def add_headers(self, response: Response, request: Request) -> Response:
        """A response about the moment, with its headers.

        A response with an entity tag about an immutable moment is cacheable without limit.
        """
        is_cacheable = NO_CACHE in response.headers and self.is_immutable
        headers = [header for header in response.headers if not (is_cacheable and header == NO_CACHE)]
        return replace(
            response, headers=[*headers, *([IMMUTABLE_CACHE] if is_cacheable else []), *self._memento_headers(request)]
        )

    def _memento_headers(self, request: Request) -> Headers:
        original_link = f"<{url_without_asof(request)}>;rel=original".encode("latin-1", "replace")
        headers: Headers = [(b"link", original_link)]
        if self.interaction.time:  # the moment before the first interaction has none
            time = format_datetime(parse_time(self.interaction.time), usegmt=True)
            headers.append((b"memento-datetime", time.encode()))
        return headers


class Snapshots:
    """Finds snapshots, and caches recent ones that cannot change."""

    def __init__(self, readers: ViewPool, definitions_cache: DefinitionsCache, clock: Clock) -> None:
        self._readers = readers
        self._definitions_cache = definitions_cache
        self._clock = clock
        self._cache = BoundedCache[str, Snapshot](CACHE_SIZE)
        self._past_definitions = BoundedCache[tuple[int, int], RegistryDefinitions](CACHE_SIZE)

    async def find(self, asof: str) -> Snapshot:
        """The snapshot that a request names; the answer in progress shows it. Raises: BadRequest."""
        cached = self._cache.get(asof)
        snapshot = cached if cached else await asyncio.to_thread(self._load, asof)
        note_position(snapshot.position)
        return snapshot

    def _load(self, asof: str) -> Snapshot:
        with self._readers.view() as view:
            interaction = view.log.as_of(asof, self._clock())
            definitions = self.definitions(view.as_of(interaction.last))
        is_fixed = is_position(asof) or asof.casefold() == interaction.folded
        snapshot = Snapshot(interaction, definitions, is_fixed)
        if is_fixed:
            self._cache.add(asof, snapshot)
        return snapshot

    def definitions(self, view: View) -> RegistryDefinitions:
        """The definitions of a moment. Most moments share theirs with other moments or with the present."""
        latest, positions = self._definitions_cache.definitions, view.definitions()
        if positions == latest.positions:
            return latest
        return self._past_definitions.get(positions) or self._past_definitions.add(positions, read_definitions(view))
