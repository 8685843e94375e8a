"""Look-ups of single entities for GET requests.

A look-up in SQLite runs at once. One in PostgreSQL is a round trip, which costs more than finding the row; so those of
the requests that arrive in one turn of the event loop share a statement.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from annals.domain.values.xid import tree_key
from annals.projections.entities.query import FoundEntity, ViewPool, found_entity


class _Waiting(NamedTuple):
    xid: str
    future: asyncio.Future[Any]


class EntityLookups:
    """The look-ups of one event loop."""

    def __init__(self, readers: ViewPool) -> None:
        self._readers = readers
        self._waiting: dict[bool, list[_Waiting]] = {}  # by whether the document is wanted

    async def find(self, xid: str, with_document: bool) -> FoundEntity:
        """`View.look_up` in the latest committed state. Raises: as that; MissingDocument."""
        if not self._readers.has_round_trips:
            return self._readers.quick_view().look_up(xid, with_document)
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._answer_waiting)
        waiting = _Waiting(xid, loop.create_future())
        self._waiting.setdefault(with_document, []).append(waiting)
        found = await waiting.future
        return found if isinstance(found, FoundEntity) else found_entity(found, xid)

    def _answer_waiting(self) -> None:
        groups, self._waiting = self._waiting, {}
        for with_document, group in groups.items():
            wanted = [waiting for waiting in group if not waiting.future.done()]  # others were cancelled
            if len(wanted) > 1 and self._answer_together(with_document, wanted):
                continue
            for xid, future in wanted:
                try:
                    future.set_result(self._readers.quick_view().look_up(xid, with_document))
                except Exception as error:  # the request reports it
                    future.set_exception(error)

    def _answer_together(self, with_document: bool, group: list[_Waiting]) -> bool:
        """Answers all of a group; False if that fails, perhaps because of one of them, such as a text with NUL."""
        try:
            values = self._readers.quick_view().look_up_values((xid for xid, _ in group), with_document)
        except Exception:  # each look-up reports its own error
            return False
        for xid, future in group:
            future.set_result(values[tree_key(xid)])
        return True
