"""Pieces of streams that many readers want at the same place: each is made once, and all go on from where it ends.

Whoever follows a log stands at its end, so with ten copies of a registry every commit would be looked up and written
ten times.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Final, NamedTuple

#: Pieces that are remembered, for readers that are a little late. Each has at most `reader.PIECE` bytes or so.
CACHE_SIZE: Final = 32


class FeedPiece(NamedTuple):
    """What comes beyond a position, and the position that it leads to. whole: whether nothing more was there."""

    content: bytes
    position: int
    whole: bool


class SharedPieces:
    """The pieces of one event loop."""

    def __init__(self) -> None:
        self._pieces: OrderedDict[Hashable, asyncio.Task[FeedPiece]] = OrderedDict()

    async def piece(self, place: Hashable, make: Callable[[], Coroutine[Any, Any, FeedPiece]]) -> FeedPiece:
        """The piece of a place: the feed as a reader sees it, and the position.

        A piece without anything is forgotten at once, because there will be something. Raises: what making it raises.
        """
        task = self._pieces.get(place)
        if task is None:
            task = self._pieces[place] = asyncio.create_task(make())
            task.add_done_callback(lambda done: self._settle(place, done))
        return task.result() if task.done() else await asyncio.shield(task)

    def _settle(self, place: Hashable, done: asyncio.Task[FeedPiece]) -> None:
        if done.cancelled() or done.exception() is not None or not done.result().content:
            self._pieces.pop(place, None)
        while len(self._pieces) > CACHE_SIZE:
            self._pieces.popitem(last=False)
