"""Keeps several processes of one server running: starts them as forks, replaces those that end, and stops all.

The parent binds the socket and creates the store before it forks; the workers share the socket, and the pages of memory
with the program. The parent holds no connection and no thread, so each fork starts clean.
"""

from __future__ import annotations

import gc
import logging
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, NoReturn

from annals.api.cli.outcome import StoreError

#: Seconds from the end of a worker to the start of its successor, at first and at most.
FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 30.0
#: Seconds after which a worker counts as started; then its successor starts after the first pause again.
STEADY_SECONDS: Final = 10.0
_STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_LOG: Final = logging.getLogger("annals")

#: Serves until the process receives SIGTERM, or until the file descriptor is at its end: then the parent has ended.
Serve = Callable[[int], None]


@dataclass
class _Worker:
    """One place among the workers. pid: None between two processes. starts_at: of the next process."""

    number: int
    pid: int | None = None
    started_at: float = 0.0
    starts_at: float = 0.0
    pause: float = FIRST_PAUSE_SECONDS


class WorkerProcesses:
    """Processes that all run one function."""

    def __init__(self, count: int, serve: Serve, grace_seconds: float, sockets: Sequence[socket.socket]) -> None:
        """grace_seconds: time to stop after which a worker is killed. sockets: those on which the workers listen."""
        self._workers = [_Worker(number) for number in range(1, count + 1)]
        self._serve = serve
        self._grace_seconds = grace_seconds
        self._sockets = sockets
        self._is_steady = False

    def run(self) -> None:
        """Runs the workers until Ctrl-C or SIGTERM. Raises: StoreError if none of the first workers starts."""
        gc.collect()
        gc.freeze()  # collections in the workers leave the shared pages alone
        lifeline, self._lifeline_end = os.pipe()
        self._lifeline = lifeline
        with _received_signals() as received:
            try:
                while not any(number in _STOP_SIGNALS for number in received(self._seconds_to_next_start())):
                    self._replace_ended()
                    self._start_due()
            finally:
                self._stop(received)
                os.close(self._lifeline_end)
                os.close(lifeline)

    def _seconds_to_next_start(self) -> float | None:
        """How long to wait if no worker ends; None for ever."""
        due_times = [worker.starts_at for worker in self._workers if worker.pid is None]
        return max(0.0, min(due_times) - time.monotonic()) if due_times else None

    def _start_due(self) -> None:
        now = time.monotonic()
        for worker in self._workers:
            if worker.pid is None and worker.starts_at <= now:
                worker.started_at, worker.pid = now, self._fork()

    def _fork(self) -> int:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            self._run_worker()
        return pid

    def _run_worker(self) -> NoReturn:
        """Serves in the process that was forked, and ends it: what the parent still has to do is not its business."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(self._lifeline_end)
            self._serve(self._lifeline)
            code = 0
        except StoreError as error:
            _LOG.error("%s", error)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _replace_ended(self) -> None:
        """Schedules successors of the workers that have ended. Raises: StoreError."""
        for worker, status in self._ended():
            lifetime = time.monotonic() - worker.started_at
            self._is_steady = self._is_steady or lifetime > STEADY_SECONDS or os.WIFSIGNALED(status) or not status
            if lifetime > STEADY_SECONDS:
                worker.pause = FIRST_PAUSE_SECONDS
            worker.starts_at = time.monotonic() + worker.pause
            _LOG.warning("worker %d %s; the next one starts in %g s", worker.number, _end_text(status), worker.pause)
            worker.pause = min(2 * worker.pause, LONGEST_PAUSE_SECONDS)
        if not self._is_steady and all(worker.pid is None and worker.started_at for worker in self._workers):
            raise StoreError("no worker could start; the lines above say why.")

    def _ended(self) -> Iterator[tuple[_Worker, int]]:
        """The workers that have ended, each with its exit status."""
        for worker in self._workers:
            if worker.pid is not None:
                pid, status = os.waitpid(worker.pid, os.WNOHANG)
                if pid:
                    worker.pid = None
                    yield worker, status

    def _stop(self, received: Callable[[float | None], bytes]) -> None:
        """Stops the workers; kills those that take too long."""
        self._send(signal.SIGTERM)
        for each in self._sockets:  # as long as one process has them open, connections are accepted that nobody answers
            each.close()
        deadline = time.monotonic() + self._grace_seconds
        while list(self._running()) and (remaining := deadline - time.monotonic()) > 0:
            received(remaining)
        self._send(signal.SIGKILL)
        for worker in self._workers:
            if worker.pid is not None:
                os.waitpid(worker.pid, 0)

    def _running(self) -> Iterator[_Worker]:
        for _ in self._ended():
            pass
        yield from (worker for worker in self._workers if worker.pid is not None)

    def _send(self, number: int) -> None:
        for worker in self._running():
            with suppress(ProcessLookupError):
                os.kill(worker.pid or 0, number)


@contextmanager
def _received_signals() -> Iterator[Callable[[float | None], bytes]]:
    """A function that waits for signals, at most so many seconds, and returns their numbers.

    The handlers do nothing: a signal that arrives between two waits is not lost, because its number is in a socket.
    """
    reader, writer = socket.socketpair()
    reader.setblocking(False)
    writer.setblocking(False)
    handled = (*_STOP_SIGNALS, signal.SIGCHLD)
    previous_handlers = {number: signal.signal(number, lambda received, _: None) for number in handled}
    previous_descriptor = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)

    def received(seconds: float | None) -> bytes:
        readable, _, _ = select.select([reader], [], [], seconds)
        return reader.recv(4096) if readable else b""

    try:
        yield received
    finally:
        signal.set_wakeup_fd(previous_descriptor)
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)
        reader.close()
        writer.close()


def _end_text(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"was ended by {signal.Signals(os.WTERMSIG(status)).name}"
    return f"has ended with code {os.WEXITSTATUS(status)}"
