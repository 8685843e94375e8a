"""Look-ups of single entities for GET requests.

A look-up in SQLite runs at once. One in PostgreSQL is a round trip, which costs more than finding the row, and lasts as
long as another transaction locks the table. So the event loop handles other requests until the answer arrives, and the
look-ups that come in meanwhile share the next statement.
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
        self._queues = {with_document: _LookupQueue(readers.url, with_document) for with_document in (False, True)}

    async def find(self, xid: str, with_document: bool) -> FoundEntity:
        """`View.look_up` in the latest committed state. Raises: as that; MissingDocument."""
        if not self._readers.is_server or "\0" in xid:
            return await self._readers.read(lambda: self._readers.quick_view().look_up(xid, with_document))
        found = found_entity(await self._queues[with_document].add(xid), xid)
        self._readers.note_read(found.position)
        return found

    def close(self) -> None:
        """Closes the connections; no look-up may be waiting."""
        for queue in self._queues.values():
            queue.close()


class _LookupQueue:
    """Look-ups that wait for the next statement, and those whose statement was sent."""

    def __init__(self, url: str, with_document: bool) -> None:
        self._url = url
        self._with_document = with_document
        self._waiting: list[_Waiting] = []
        self._sent: list[_Waiting] = []
        self._is_busy = False  # from the first look-up to the answer after which none is waiting
        self._is_second_try = False
        self._is_closed = False
        self._lookups: SentLookups | None = None
        self._connect_task: asyncio.Task[None] | None = None
        self._stop_reading: Callable[[], object] = lambda: None

    def add(self, xid: str) -> asyncio.Future[Any]:
        """The values for `found_entity`."""
        loop = asyncio.get_running_loop()
        waiting = _Waiting(xid, loop.create_future())
        self._waiting.append(waiting)
        if not self._is_busy:
            self._is_busy = True
            # Those of the requests that arrive in the same turn of the loop come along.
            loop.call_soon(self._send)
        return waiting.future

    def close(self) -> None:
        """Closes the connection, also one that is being opened."""
        self._is_closed = True
        self._disconnect()

    def _disconnect(self) -> None:
        if self._lookups is not None:
            self._stop_reading()
            self._lookups.close()
            self._lookups = None

    def _send(self) -> None:
        """Sends the next statement, if look-ups wait for it."""
        self._sent = [each for each in self._waiting if not each.future.done()]  # others were cancelled
        self._waiting = []
        self._is_busy = bool(self._sent)
        if not self._sent:
            self._is_second_try = False
            return
        if self._lookups is None:
            self._connect_task = asyncio.create_task(self._connect())
            return
        try:
            self._lookups.send(xid for xid, _ in self._sent)
        except Exception as error:
            self._fail(error)

    async def _connect(self) -> None:
        """Connects in a thread, and sends the next statement."""
        from annals.projections.entities.sent_lookups import SentLookups

        try:
            lookups = await asyncio.to_thread(SentLookups, self._url, self._with_document)
        except Exception as error:
            self._is_second_try = True
            self._fail(error)
            return
        if self._is_closed:
            lookups.close()
            return
        loop, socket = asyncio.get_running_loop(), lookups.fileno()
        loop.add_reader(socket, self._receive)
        self._lookups, self._stop_reading = lookups, partial(loop.remove_reader, socket)
        self._send_again()

    def _receive(self) -> None:
        if self._lookups is None or not self._sent:
            self._disconnect()  # the server ends the connection, or announces a change
            return
        try:
            values = self._lookups.receive()
        except Exception as error:
            self._fail(error)
            return
        if values is None:
            return
        for xid, future in self._sent:
            if not future.done():
                future.set_result(values[tree_key(xid)])
        self._is_second_try = False
        self._send()

    def _fail(self, error: Exception) -> None:
        """Tries again with a new connection, because the server may have closed this one since its last use."""
        self._disconnect()
        if not self._is_second_try:
            self._is_second_try = True
            self._send_again()
            return
        self._is_second_try = False
        for _, future in self._sent:
            if not future.done():
                future.set_exception(error)
        self._send()

    def _send_again(self) -> None:
        self._waiting = [*self._sent, *self._waiting]
        self._send()
