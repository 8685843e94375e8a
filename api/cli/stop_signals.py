"""Stops verbs that run until they receive a signal."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Event, Thread


@contextmanager
def stop_event() -> Iterator[Event]:
    """An event that Ctrl-C and SIGTERM set.

    A thread sets it, not the handler: handlers interrupt the main thread, which may hold the lock that `set` takes.
    """
    stop = Event()
    signals: SimpleQueue[int | None] = SimpleQueue()  # the only queue whose `put` may interrupt itself

    def forward() -> None:
        if signals.get() is not None:
            stop.set()

    Thread(target=forward, name="annals-signals", daemon=True).start()
    previous_handlers = {
        number: signal.signal(number, lambda received, _: signals.put(received))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)
        signals.put(None)
