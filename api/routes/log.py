"""`/-/log`: the log in order, and its head."""

from __future__ import annotations

from typing import Final

from starlette.types import Receive

from api.answer import Answer
from api.request import Request
from api.wiring import Registry
from domain import problems

LOG: Final = "log"


class LogFeed:
    """The surface of `/-/log`."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def answer(self, request: Request, receive: Receive) -> Answer:
        """See `front.Surface`."""
        raise problems.ApiNotFound()
