"""The outcome of a command for a coroutine that waits for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Any, Final

from annals.commands.store.write_transaction import Recorded

_CALLBACKS_LOCK: Final = Lock()
_LOG: Final = logging.getLogger("annals.store")


class LoopFuture:
    """A `CommandFuture` whose outcome the running event loop receives.

    outcome: awaited by the coroutine. `asyncio.wrap_future` would keep two futures for it and lock one of them at each
    step, which takes a twentieth of the time of a small write.
    """

    __slots__ = ("_callbacks", "_has_outcome", "_is_running", "_loop", "outcome")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._is_running = self._has_outcome = False
        self._callbacks: list[Callable[[Any], object]] = []
        self.outcome: asyncio.Future[Recorded] = self._loop.create_future()

    def cancelled(self) -> bool:
        """Whether the coroutine no longer waits."""
        return self.outcome.cancelled()

    def running(self) -> bool:
        """Whether the command is being carried out."""
        return self._is_running

    def set_running_or_notify_cancel(self) -> bool:
        """Whether the coroutine still waits; then the command is carried out in any case."""
        self._is_running = not self.outcome.cancelled()
        return self._is_running

    def set_result(self, result: Recorded, /) -> None:
        """Passes the result to the event loop, unless the loop is closed."""
        self._pass_on(self._set_result, result)

    def set_exception(self, exception: Exception, /) -> None:
        """Passes the error to the event loop, unless the loop is closed."""
        self._pass_on(self._set_exception, exception)

    def add_done_callback(self, callback: Callable[[Any], object], /) -> None:
        """Has a function called when there is an outcome, or when the coroutine no longer waits."""
        with _CALLBACKS_LOCK:
            self._callbacks.append(callback)
        if self._has_outcome or self.outcome.cancelled():
            self._call_back()
        else:  # only the loop may wait for the cancellation
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self.outcome.add_done_callback, lambda _: self._call_back())

    def _pass_on(self, receive: Callable[[Any], None], outcome: object) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(receive, outcome)
        self._has_outcome = True
        if self._callbacks:
            self._call_back()

    def _call_back(self) -> None:
        with _CALLBACKS_LOCK:  # each function is called once, whichever thread comes first
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            try:
                callback(self)
            except Exception:  # as a `Future` does: the thread goes on to the outcomes of other commands
                _LOG.exception("a callback of a command failed")

    def _set_result(self, result: Recorded) -> None:
        if not self.outcome.done():
            self.outcome.set_result(result)

    def _set_exception(self, exception: Exception) -> None:
        if not self.outcome.done():
            self.outcome.set_exception(exception)
