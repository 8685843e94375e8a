"""Stream pieces that several readers at the same position share: each piece is made once.

Readers that follow a log are usually at its end. Without sharing, ten copies of a registry would read and serialize
every commit ten times.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Final, NamedTuple

#: Number of remembered pieces, for readers that are slightly behind. A piece has about `reader.MAX_PIECE_BYTES` at
#: most.
CACHE_SIZE: Final = 32


class FeedPiece(NamedTuple):
    """The content after a position, and the position that it reaches.

    is_complete: whether the piece reaches the end of the log.
    """

    content: bytes
    position: int
    is_complete: bool


class SharedPieces:
    """The shared pieces of one event loop."""

    def __init__(self) -> None:
        self._pieces: OrderedDict[Hashable, asyncio.Task[FeedPiece]] = OrderedDict()

    async def get(self, piece_key: Hashable, make_piece: Callable[[], Coroutine[Any, Any, FeedPiece]]) -> FeedPiece:
        """The piece for a key, which names the feed as a reader sees it and the position.

        An empty piece is removed at once, because later events will follow. Raises: what `make_piece` raises.
        """
        task = self._pieces.get(piece_key)
        if task is None:
            task = self._pieces[piece_key] = asyncio.create_task(make_piece())
            task.add_done_callback(lambda done: self._on_done(piece_key, done))
        return task.result() if task.done() else await asyncio.shield(task)

    def _on_done(self, piece_key: Hashable, task: asyncio.Task[FeedPiece]) -> None:
        if task.cancelled() or task.exception() is not None or not task.result().content:
            self._pieces.pop(piece_key, None)
        while len(self._pieces) > CACHE_SIZE:
            self._pieces.popitem(last=False)
