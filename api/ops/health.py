"""Health checks: is the process alive, and is the read model up to date?"""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.types import Receive

from annals.api.http.json_bodies import json_response
from annals.api.http.methods import read_only_options
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.api.ops.archive_monitor import ArchiveMonitor
from annals.api.registry.open_registry import Registry
from annals.commands.store.database.engine import require_same_file
from annals.commands.store.database.outages import UnwritableDatabase
from annals.commands.store.database.store_lost import StoreLost
from annals.domain.values.json_text import Json

LIVEZ: Final = "livez"
READYZ: Final = "readyz"

_ALIVE_BODY: Final[Json] = {"status": "ok"}


class HealthRoutes:
    """The surface of `/-/livez` and `/-/readyz`."""

    def __init__(self, registry: Registry, archive: ArchiveMonitor) -> None:
        self._registry = registry
        self._archive = archive

    async def answer(self, request: Request, receive: Receive) -> Response:
        """The response of one check: 200 or 503. Raises: MethodNotAllowed."""
        if (options := read_only_options(request)) is not None:
            return options
        name = request.segments[-1]
        if name == LIVEZ:
            return json_response(request, 200, _ALIVE_BODY)
        status, report = await asyncio.to_thread(self._readiness)
        return json_response(request, status, report)

    def _readiness(self) -> tuple[int, dict[str, Json]]:
        """Status and body.

        Ready means: the store answers and takes writes, it has no known damage, its log has all that the process has
        read of it, and the read model has the whole log. An archive that is incomplete is reported, but the server
        stays ready: only reads of the past need it.
        """
        try:
            require_same_file(self._registry.store.engine)
            head = self._registry.store.log_end(for_writing=True).position
            with self._registry.readers.view() as view:
                applied_position = view.position()
        except StoreLost as error:
            return 503, {"status": "unavailable", "reason": f"the store cannot be used: {error}"}
        except UnwritableDatabase as error:
            return 503, {"status": "unavailable", "reason": f"the store cannot be written to: {error}"}
        except Exception as error:
            if not self._registry.store.damage.note(error):
                reason = f"the store cannot be reached ({type(error).__name__})"
                return 503, {"status": "unavailable", "reason": reason}
        if (damage := self._registry.store.damage.first_damage) is not None:
            return 503, {"status": "unavailable", "reason": f"the store cannot be used: {damage}"}
        if not isinstance(applied_position, int) or applied_position < head:
            reason = "the read model is behind the log"
            return 503, {"status": "unavailable", "reason": reason, "position": applied_position, "head": head}
        problem = self._archive.health().problem
        archive: dict[str, Json] = {"archive": problem} if problem else {}
        return 200, {"status": "ok", "position": applied_position, "head": head, **archive}
