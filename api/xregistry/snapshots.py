"""Moments of the past, for requests with `asof` and for pages: the interaction, and the registry's definitions then.

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
from annals.api.xregistry.cursor import position_of
from annals.api.xregistry.request.flags import requested_cursor
from annals.api.xregistry.request.parsed_request import parse_request
from annals.api.xregistry.request.paths import COLLECTION_KINDS
from annals.commands.store.clock import Clock, parse_time
from annals.commands.store.hashes import Interaction
from annals.domain.errors.problems import Problem
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

    async def are_needed_for_page(self, request: Request) -> bool:
        """Whether a request is for a page of a list whose first page had other definitions than the present ones."""
        position = _position_of_page(request)
        if not position or position >= max((await self._readers.read(self._present_definitions)).positions):
            return False
        return await asyncio.to_thread(self._find_page_definitions, request) is not None

    def page_definitions(self, request: Request, view: View) -> RegistryDefinitions | None:
        """The definitions of the first page of a list, if they have changed since; None for other requests.

        The links between pages were made under them, and mean the same under no others. view: of the present.
        """
        position = _position_of_page(request)
        if not position or position >= max(view.definitions()):
            return None
        definitions = self._read_definitions(view.as_of(position))
        try:
            _, target, flags, _ = parse_request(request, definitions)
        except Problem:
            return None  # the present ones decide
        return definitions if target.kind in COLLECTION_KINDS and flags.cursor is not None else None

    def _find_page_definitions(self, request: Request) -> RegistryDefinitions | None:
        with self._readers.view() as view:
            return self.page_definitions(request, view)

    def _present_definitions(self) -> RegistryDefinitions:
        return self._definitions_cache.current(self._readers.latest_view())

    def _load(self, asof: str) -> Snapshot:
        with self._readers.view() as view:
            interaction = view.log.as_of(asof, self._clock())
            definitions = self._read_definitions(view.as_of(interaction.last))
        is_fixed = is_position(asof) or asof.casefold() == interaction.folded
        snapshot = Snapshot(interaction, definitions, is_fixed)
        if is_fixed:
            self._cache.add(asof, snapshot)
        return snapshot

    def _read_definitions(self, view: View) -> RegistryDefinitions:
        """The definitions of a moment. Most moments share theirs with other moments or with the present."""
        latest, positions = self._definitions_cache.definitions, view.definitions()
        if positions == latest.positions:
            return latest
        return self._past_definitions.get(positions) or self._past_definitions.add(positions, read_definitions(view))


def _position_of_page(request: Request) -> int | None:
    """The log position in the link to a page; None if the request has no such link."""
    cursor = requested_cursor(request.query) if request.query else None
    return position_of(cursor) if cursor is not None else None
