"""How a copy ends early, although the other side may not answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Event, Thread
from typing import Any, Final, TypeVar

from annals.projections.confluent_copy.read_copies import ReportAmount
from annals.projections.confluent_copy.rest_api import RestAnswer, RestApi

#: How often, in seconds, a waiting call looks whether to stop.
_POLL_SECONDS: Final = 0.1

Result = TypeVar("Result")


class CopyStopped(Exception):
    """Raised instead of a result after a signal has stopped the copy."""


def result_or_stop(function: Callable[[], Result], stop: Event, grace: float = 0.0) -> Result:
    """The result of a function, which runs in a thread and is abandoned there once the event is set.

    grace: seconds that the function may take after that.
    Raises: CopyStopped; what the function raises.
    """
    future = Future[Result]()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    end: float | None = None
    Thread(target=run, daemon=True).start()  # a daemon, so that the process can end before it
    while not wait([future], _POLL_SECONDS).done:
        if stop.is_set():
            end = time.monotonic() + grace if end is None else end
            if time.monotonic() >= end:
                raise CopyStopped
    return future.result()


class StoppableApi:
    """A `RestApi` whose requests are abandoned once an event is set. grace: see `result_or_stop`.

    No further request is sent then, but with grace those that change something, which end what is begun.
    """

    def __init__(self, api: RestApi, stop: Event, grace: float = 0.0) -> None:
        self._api = api
        self._stop = stop
        self._grace = grace

    def send(self, method: str, path: str, body: Any = None) -> RestAnswer:
        """See `RestApi`. Raises: CopyStopped."""
        if self._stop.is_set() and (method == "GET" or not self._grace):
            raise CopyStopped
        return result_or_stop(lambda: self._api.send(method, path, body), self._stop, self._grace)


def stoppable_report(report: ReportAmount, stop: Event) -> ReportAmount:
    """A function that reports progress, and raises CopyStopped once the event is set."""

    def report_or_stop(done: int, total: int) -> None:
        if stop.is_set():
            raise CopyStopped
        report(done, total)

    return report_or_stop
