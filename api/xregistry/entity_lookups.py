"""Look-ups of single entities for GET requests.

A look-up in SQLite runs at once. One in PostgreSQL is a round trip, which costs more than finding the row. So the event
loop handles other requests until the answer arrives, and the look-ups that come in meanwhile share the next statement.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from annals.domain.values.xid import tree_key
from annals.projections.entities.query import FoundEntity, ViewPool, found_entity
from annals.projections.entities.sent_lookups import SentLookups


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
    """Look-ups that wait for the next statement, and those that wait for its answer."""

    def __init__(self, readers: ViewPool, with_document: bool) -> None:
        self._readers = readers
        self._with_document = with_document
        self._waiting: list[_Waiting] = []
        self._sent: list[_Waiting] = []
        self._lookups: SentLookups | None = None
        self._socket = -1

    def add(self, xid: str) -> asyncio.Future[Any]:
        """The values for `found_entity`, or a `FoundEntity`."""
        loop = asyncio.get_running_loop()
        if not (self._waiting or self._sent):
            # Those of the requests that arrive in the same turn of the loop come along.
            loop.call_soon(self._send)
        waiting = _Waiting(xid, loop.create_future())
        self._waiting.append(waiting)
        return waiting.future

    def close(self) -> None:
        """Closes the connection."""
        if self._lookups is not None:
            self._lookups.close()
            self._lookups = None

    def _send(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._sent = [each for each in waiting if not each.future.done()]  # others were cancelled
        if not self._sent:
            return
        try:
            self._lookups = self._lookups or SentLookups(self._readers.url, self._with_document)
            self._lookups.send(xid for xid, _ in self._sent)
            self._socket = self._lookups.fileno()
            asyncio.get_running_loop().add_reader(self._socket, self._receive)
        except Exception:  # each look-up reports its own error
            self._answer_one_by_one()

    def _receive(self) -> None:
        assert self._lookups is not None, "nothing was sent"
        try:
            values = self._lookups.receive()
        except Exception:  # each look-up reports its own error
            values = {}
        if values is None:
            return
        asyncio.get_running_loop().remove_reader(self._socket)
        if not values:
            self._answer_one_by_one()
        for xid, future in self._sent:
            if not future.done():
                future.set_result(values[tree_key(xid)])
        self._sent = []
        if self._waiting:
            self._send()

    def _answer_one_by_one(self) -> None:
        """Answers the look-ups that were sent in another way, and gives up the connection."""
        sent, self._sent = self._sent, []
        self.close()
        for xid, future in sent:
            if future.done():
                continue
            try:
                future.set_result(self._readers.quick_view().look_up(xid, self._with_document))
            except Exception as error:  # the request reports it
                future.set_exception(error)
