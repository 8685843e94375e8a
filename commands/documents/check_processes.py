"""Manages the processes that check documents: starts them on demand and replaces those that ended."""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from subprocess import PIPE
from threading import Lock, Timer
from typing import Any, Final, NamedTuple

from annals.commands.documents import check_server
from annals.commands.documents.check_server import CheckRequest
from annals.domain.decisions.checks.document_checks import CRASHED, OUT_OF_MEMORY, TIMED_OUT, CheckResult
from annals.domain.errors.problems import ServerBusy
from annals.domain.formats import Incompatibility

#: Returns the bytes of a document by SHA-256; called in other threads.
LoadDocument = Callable[[str], bytes]

#: Seconds for starting a process, for its imports and for sending it the documents.
STARTUP_SECONDS: Final = 30.0
#: Seconds to wait for a process that no longer responds to end by itself.
_EXIT_WAIT_SECONDS: Final = 0.5
#: The environment variables that a process inherits; none of them holds a secret of the server.
_PASSED_VARIABLES: Final = (
    "PATH",
    "LANG",
    "TZ",
    "TMPDIR",
    "TEMP",
    "TMP",
    "SYSTEMROOT",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
)
_START_CODE: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from annals.commands.documents.check_server import main; main(int(sys.argv[1]))"
)


class CheckResponse(NamedTuple):
    """The response of a process: results of the first checks, and the failure if the rest have none."""

    results: list[CheckResult]
    failure: Incompatibility | None = None


class CheckProcessPool:
    """At most `count` processes, each limited to `memory_limit` bytes. Thread-safe."""

    def __init__(self, count: int, memory_limit: int) -> None:
        self._memory_limit = memory_limit
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="annals-checks")
        self._lock = Lock()
        self._idle: list[_CheckProcess] = []
        atexit.register(self.stop)

    def submit(self, client: CheckClient, request: CheckRequest, load_document: LoadDocument) -> Future[CheckResponse]:
        """The response of a process to a batch.

        The future raises what `load_document` raises, and ServerBusy when the client is closed.
        """
        return self._threads.submit(self._check_in_process, client, request, load_document)

    def stop(self) -> None:
        """Ends the idle processes."""
        with self._lock:
            workers, self._idle = self._idle, []
        for worker in workers:
            worker.end()

    def _check_in_process(
        self, client: CheckClient, request: CheckRequest, load_document: LoadDocument
    ) -> CheckResponse:
        client.ensure_open()
        worker = self._acquire()
        try:
            with client.using(worker):
                response = worker.check(request, load_document)
        except BaseException:
            worker.end()
            raise
        if worker.is_usable:
            with self._lock:
                self._idle.append(worker)
        else:
            worker.end()
        return response

    def _acquire(self) -> _CheckProcess:
        """The process used last, because it has most parsed documents in its cache; or a new one."""
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.is_alive:
                    return worker
                worker.end()
        return _CheckProcess(self._memory_limit)


class CheckClient:
    """A client of the shared processes; closing it ends only the processes that work for it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._busy_processes: set[_CheckProcess] = set()
        self._is_closed = False

    def close(self) -> None:
        """Kills the processes that work for this client; it can start no more checks."""
        with self._lock:
            self._is_closed = True
            for worker in self._busy_processes:
                worker.kill()

    def ensure_open(self) -> None:
        """Raises: ServerBusy when the client is closed."""
        if self._is_closed:
            raise ServerBusy(detail="the server is stopping and no longer checks documents")

    @contextmanager
    def using(self, worker: _CheckProcess) -> Iterator[None]:
        """Marks a process as working for this client. Raises: ServerBusy when the client is closed or gets closed."""
        with self._lock:
            self.ensure_open()
            self._busy_processes.add(worker)
        try:
            yield
        finally:
            with self._lock:
                self._busy_processes.discard(worker)
        self.ensure_open()


class _CheckProcess:
    """One process. is_usable: it can run further checks."""

    def __init__(self, memory_limit: int) -> None:
        options = ["-P", "-B"] if sys.dont_write_bytecode else ["-P"]
        command = [sys.executable, *options, "-c", _START_CODE, str(memory_limit), *sys.path]
        self._process = subprocess.Popen(command, stdin=PIPE, stdout=PIPE, env=dict(_environment()))
        self._is_killed = False
        self.is_usable = True

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def check(self, request: CheckRequest, load_document: LoadDocument) -> CheckResponse:
        """The results that the process returned. Raises: what `load_document` raises."""
        results: list[CheckResult] = []
        # The process has a timer for each check; this timer covers a process that does not reach its own.
        kill_timer = Timer(STARTUP_SECONDS + request.seconds * len(request.document_checks), self.kill)
        kill_timer.daemon = True
        kill_timer.start()
        try:
            self._send(tuple(request))
            requested_hashes = check_server.requested_documents(self._read_line(), request.document_checks)
            self._send({name: load_document(name) for name in requested_hashes})
            for _ in request.document_checks:
                results.append(check_server.decode_result(self._read_line()))  # noqa: PERF401  (results before a failure count)
            self.is_usable = self._read_line() == b"true\n"
        except (_ProcessSilent, BrokenPipeError):
            self.is_usable = False
            return CheckResponse(results, self._exit_reason())
        finally:
            kill_timer.cancel()
        return CheckResponse(results)

    def kill(self) -> None:
        """Kills the process in the middle of its work; a caller that waits for it gets no more output."""
        self._is_killed = True
        self._process.kill()

    def end(self) -> None:
        """Ends the process and closes its pipes."""
        self.is_usable = False
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:  # unsent data was left in the pipe
                pass

    def _send(self, value: Any) -> None:
        assert self._process.stdin is not None
        pickle.dump(value, self._process.stdin, pickle.HIGHEST_PROTOCOL)  # writes large documents without copying them
        self._process.stdin.flush()

    def _read_line(self) -> bytes:
        """The next line of output. Raises: _ProcessSilent."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):
            raise _ProcessSilent
        return line

    def _exit_reason(self) -> Incompatibility:
        """Why the process returns no more output."""
        try:
            exit_code = self._process.wait(_EXIT_WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            return CRASHED
        if self._is_killed or exit_code == -getattr(signal, "SIGALRM", 0):
            return TIMED_OUT
        # The system also kills a process that is short of memory.
        return (
            OUT_OF_MEMORY if exit_code in (check_server.MEMORY_EXIT_CODE, -getattr(signal, "SIGKILL", 0)) else CRASHED
        )


class _ProcessSilent(Exception):
    """The process has ended, or its output is malformed."""


def _environment() -> Iterator[tuple[str, str]]:
    for name, value in os.environ.items():
        if name.upper() in _PASSED_VARIABLES or name.startswith("LC_"):
            yield name, value
