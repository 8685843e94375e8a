"""`/-/metrics`: what Prometheus asks for, for callers who may read the whole registry."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.types import Receive

from api.answer import Answer
from api.metrics import CONTENT_TYPE, Metrics
from api.problem import root_link
from api.request import Request
from api.rules import options_of_reads
from domain.refusals import Forbidden

METRICS: Final = "metrics"


class Measured:
    """The surface of `/-/metrics`."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    async def answer(self, request: Request, receive: Receive) -> Answer:
        """All figures in the text format. Raises: NotAllowed, Forbidden."""
        if (options := options_of_reads(request)) is not None:
            return options
        if request.caller.role is None:
            raise Forbidden(caller=request.caller.name)
        text = await asyncio.to_thread(self._metrics.text)
        return Answer(200, [CONTENT_TYPE, root_link(request.base)], text)
