"""Detects answers that do not progress: bytes count only once they complete an answer or a line."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from threading import Lock, Timer
from typing import Any, Final, Self, TypeVar

#: Seconds within which an answer, or in a feed a line, must be complete.
STALL_SECONDS: Final = 60.0

T = TypeVar("T")


class ResponseStalled(Exception):
    """Nothing was completed within a number of seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"its answer made no progress for {seconds:.0f} s")


class Watchdog:
    """Interrupts its block when it takes too long. interrupt: makes blocked calls in the block fail.

    Raises: ResponseStalled instead of the resulting error.
    """

    def __init__(self, interrupt: Callable[[], None], seconds: float = STALL_SECONDS) -> None:
        self._interrupt = interrupt
        self._seconds = seconds
        self._lock = Lock()
        self._timer: Timer | None = None
        self._armed_at = 0.0
        self._has_expired = False

    def __enter__(self) -> Self:
        self._arm()
        return self

    def __exit__(self, error_type: object, error: BaseException | None, traceback: object) -> None:
        self.stop()
        if self._has_expired and isinstance(error, Exception):
            raise ResponseStalled(self._seconds) from error

    def stop(self) -> None:
        """Stops watching."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def watch_parts(self, content: Iterable[T]) -> Iterator[T]:
        """The parts of an upload. Each part that is consumed restarts the time."""
        for part in content:
            if time.monotonic() - self._armed_at > 1:
                self._arm()
            yield part

    def _arm(self) -> None:
        self.stop()
        with self._lock:
            self._armed_at = time.monotonic()
            self._timer = Timer(self._seconds, self._expire)
            self._timer.daemon = True
            self._timer.start()

    def _expire(self) -> None:
        self._has_expired = True
        self._interrupt()


def check_progress(lines: Iterable[bytes | None]) -> Iterator[bytes | None]:
    """The lines of a feed, and None after each received chunk. Raises: ResponseStalled.

    Empty lines do not count as progress. The time that the consumer spends on a line does not count either.
    """
    remaining = STALL_SECONDS
    started_at = time.monotonic()
    for line in lines:
        remaining = STALL_SECONDS if line else remaining - (time.monotonic() - started_at)
        if remaining <= 0:
            raise ResponseStalled(STALL_SECONDS)
        yield line
        started_at = time.monotonic()


def watch_upload(options: dict[str, Any], watchdog: Watchdog) -> dict[str, Any]:
    """The options of a request, with its content watched if it is sent in parts."""
    content = options.get("content")
    if content is None or isinstance(content, bytes | str):
        return options
    return {**options, "content": watchdog.watch_parts(content)}
