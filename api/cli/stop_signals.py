"""Signals that stop a verb: Ctrl-C, SIGTERM, and SIGHUP when its terminal is closed."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Event, Thread
from types import FrameType


@contextmanager
def stop_event(numbers: Sequence[int] = (signal.SIGINT, signal.SIGTERM)) -> Iterator[Event]:
    """An event that Ctrl-C and SIGTERM set, or other signals. A signal that the process ignores stays ignored.

    A second signal has its usual effect, for a verb that cannot stop, as while it waits for another server.
    A thread sets the event, not the handler: handlers interrupt the main thread, which may hold the lock of `set`.
    """
    stop = Event()
    signals: SimpleQueue[int | None] = SimpleQueue()  # the only queue whose `put` may interrupt itself

    def forward() -> None:
        if signals.get() is not None:
            stop.set()

    def receive(number: int, _: FrameType | None) -> None:
        if received:
            restore()
            signal.raise_signal(number)
            return
        received.append(number)
        signals.put(number)

    def restore() -> None:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)

    Thread(target=forward, name="annals-signals", daemon=True).start()
    received = list[int]()
    previous_handlers = {
        number: signal.getsignal(number)
        for number in numbers
        if signal.getsignal(number) is not signal.SIG_IGN  # as of Ctrl-C, in the background of a script
    }
    for number in previous_handlers:
        signal.signal(number, receive)
    try:
        yield stop
    finally:
        restore()
        signals.put(None)


@contextmanager
def cleaning_up() -> Iterator[None]:
    """Lets SIGTERM and SIGHUP interrupt the block as Ctrl-C does, so that it can clean up.

    At its end the process ends by the signal. A signal that the process ignores stays ignored.
    """
    received: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        received.append(number)
        on_interrupt = signal.getsignal(signal.SIGINT)  # while an event loop runs, its own
        if not callable(on_interrupt):
            raise KeyboardInterrupt
        on_interrupt(signal.SIGINT, frame)

    numbers = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)
        if received:
            signal.raise_signal(received[0])


@contextmanager
def interruptible() -> Iterator[None]:
    """Lets Ctrl-C raise KeyboardInterrupt in the block at once, for calls in an event loop that may block.

    Otherwise the loop would handle it only after the call. If the process ignores Ctrl-C, it goes on doing so.
    """
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
