"""Look-ups of single entities for GET requests.

A look-up in SQLite runs at once. One in PostgreSQL is a round trip, which costs more than finding the row. So the event
loop handles other requests until the answer arrives, and the look-ups that come in meanwhile share the next statement.
Where there are no other requests, waiting takes less time than a turn of the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from annals.domain.values.xid import tree_key
from annals.projections.entities.found_entities import FoundEntity, found_entity
from annals.projections.entities.view_pool import ViewPool

if TYPE_CHECKING:
    from annals.projections.entities.sent_lookups import SentLookups  # imports psycopg, which SQLite does not need


class _Waiting(NamedTuple):
    xid: str
    future: asyncio.Future[Any]


class EntityLookups:
    """The look-ups of one event loop."""

    def __init__(self, readers: ViewPool) -> None:
        self._readers = readers
        self._queues = {with_document: _LookupQueue(readers, with_document) for with_document in (False, True)}

    async def find(self, xid: str, with_document: bool) -> FoundEntity:
        """`View.look_up` in the latest committed state. Raises: as that; MissingDocument."""
        if not self._readers.has_round_trips or "\0" in xid:
            return self._readers.quick_view().look_up(xid, with_document)
        found = await self._queues[with_document].add(xid)
        return found if isinstance(found, FoundEntity) else found_entity(found, xid)

    def close(self) -> None:
        """Closes the connections; no look-up may be waiting."""
        for queue in self._queues.values():
            queue.close()


class _LookupQueue:
    """Look-ups that wait for the next statement, and those whose statement was sent."""

    def __init__(self, readers: ViewPool, with_document: bool) -> None:
        self._readers = readers
        self._with_document = with_document
        self._waiting: list[_Waiting] = []
        self._sent: list[_Waiting] = []
        self._has_company = False  # whether others came with the last look-up, or while it was under way
        self._lookups: SentLookups | None = None
        self._stop_reading: Callable[[], object] = lambda: None

    def add(self, xid: str) -> asyncio.Future[Any]:
        """The values for `found_entity`, or a `FoundEntity`."""
        loop = asyncio.get_running_loop()
        if not (self._waiting or self._sent):
            # Those of the requests that arrive in the same turn of the loop come along.
            loop.call_soon(self._answer_waiting)
        waiting = _Waiting(xid, loop.create_future())
        self._waiting.append(waiting)
        return waiting.future

    def close(self) -> None:
        """Closes the connection."""
        if self._lookups is not None:
            self._stop_reading()
            self._lookups.close()
            self._lookups = None

    def _answer_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._sent = [each for each in waiting if not each.future.done()]  # others were cancelled
        has_company, self._has_company = self._has_company, len(self._sent) > 1
        if not self._sent:
            return
        if len(self._sent) <= 1 and not has_company:
            self._answer_one_by_one()
            return
        try:
            self._connection().send(xid for xid, _ in self._sent)
        except Exception:  # each look-up reports its own error
            self.close()
            self._answer_one_by_one()

    def _connection(self) -> SentLookups:
        if self._lookups is None:
            from annals.projections.entities.sent_lookups import SentLookups

            lookups, loop = SentLookups(self._readers.url, self._with_document), asyncio.get_running_loop()
            socket = lookups.fileno()
            loop.add_reader(socket, self._receive)
            self._lookups, self._stop_reading = lookups, partial(loop.remove_reader, socket)
        return self._lookups

    def _receive(self) -> None:
        if self._lookups is None or not self._sent:
            self.close()  # the server ends the connection, or announces a change
            return
        try:
            values = self._lookups.receive()
        except Exception:  # each look-up reports its own error
            self.close()
            self._answer_one_by_one()
        else:
            if values is None:
                return
            for xid, future in self._sent:
                if not future.done():
                    future.set_result(values[tree_key(xid)])
            self._sent = []
        if self._waiting:
            self._has_company = True
            self._answer_waiting()

    def _answer_one_by_one(self) -> None:
        sent, self._sent = self._sent, []
        for xid, future in sent:
            if future.done():
                continue
            try:
                future.set_result(self._readers.quick_view().look_up(xid, self._with_document))
            except Exception as error:  # the request reports it
                future.set_exception(error)
