"""Answers that have to get somewhere: bytes that come in without ever making something whole do not count."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from threading import Lock, Timer
from typing import Any, Final, Self, TypeVar

#: Seconds in which something whole has to come: an answer, or in a feed a line.
STALL_SECONDS: Final = 60.0

T = TypeVar("T")


class ResponseStalled(Exception):
    """For some seconds nothing whole has come."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"it has sent nothing whole for {seconds:.0f} s")


class Watchdog:
    """Ends what waits inside its block, unless it is over within some seconds. cut: has what waits there fail.

    Raises: ResponseStalled in the place of what fails then.
    """

    def __init__(self, cut: Callable[[], None], seconds: float = STALL_SECONDS) -> None:
        self._cut = cut
        self._seconds = seconds
        self._lock = Lock()
        self._timer: Timer | None = None
        self._armed = 0.0
        self._bitten = False

    def __enter__(self) -> Self:
        self._arm()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.rest()
        if self._bitten and isinstance(error, Exception):
            raise ResponseStalled(self._seconds) from error

    def rest(self) -> None:
        """Watches no longer."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def passing(self, content: Iterable[T]) -> Iterator[T]:
        """The parts of what is sent; each of them that is taken begins the time again."""
        for each in content:
            if time.monotonic() - self._armed > 1:
                self._arm()
            yield each

    def _arm(self) -> None:
        self.rest()
        with self._lock:
            self._armed = time.monotonic()
            self._timer = Timer(self._seconds, self._bite)
            self._timer.daemon = True
            self._timer.start()

    def _bite(self) -> None:
        self._bitten = True
        self._cut()


def check_progress(lines: Iterable[bytes | None]) -> Iterator[bytes | None]:
    """Lines of a feed, and None after each part of it that came at once. Raises: ResponseStalled.

    A line that says nothing does not count. The time that is spent on a line is not the other end's.
    """
    left = STALL_SECONDS
    began = time.monotonic()
    for line in lines:
        left = STALL_SECONDS if line else left - (time.monotonic() - began)
        if left <= 0:
            raise ResponseStalled(STALL_SECONDS)
        yield line
        began = time.monotonic()


def watch_upload(options: dict[str, Any], watchdog: Watchdog) -> dict[str, Any]:
    """Options of a request whose content, if it goes in parts, is watched as it goes."""
    content = options.get("content")
    if content is None or isinstance(content, bytes | str):
        return options
    return {**options, "content": watchdog.passing(content)}
