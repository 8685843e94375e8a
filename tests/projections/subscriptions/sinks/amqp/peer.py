"""An AMQP peer on rhea, which is independent of Proton and can give the outcomes that brokers do not give."""

from __future__ import annotations

import json
import queue
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from annals.projections.subscriptions.contract import SinkTarget
from tests.support.brokers import amqp
from tests.support.brokers.suite import GOOD, HOST, PASSWORD, USER
from tests.support.downloads.npm import packages

_SCRIPT: Final = Path(__file__).with_name("peer.js")


class Peer:
    """A running peer. port: where it listens. process: so that tests can suspend it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._said: queue.Queue[dict[str, Any]] = queue.Queue()
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()
        self.port: int = self.next("port")

    def next(self, what: str, seconds: float = 60.0) -> Any:
        """The value of the next line of one kind; skips the other lines. Raises: queue.Empty."""
        return self.line(what, seconds)[what]

    def line(self, what: str, seconds: float = 60.0) -> dict[str, Any]:
        """The next line of one kind, as a whole. Raises: queue.Empty."""
        end = time.monotonic() + seconds
        while what not in (line := self._said.get(timeout=max(0.0, end - time.monotonic()))):
            pass
        return line

    def unsolicited_lines(self) -> list[dict[str, Any]]:
        """All lines that were not read yet, about what the peer has seen until now."""
        time.sleep(0.2)  # it may still be reading what was sent without a response
        assert self.process.stdin is not None
        self.process.stdin.write("?\n")
        self.process.stdin.flush()
        return [*iter(lambda: self._said.get(timeout=60), {"asked": True})]

    def target(self, address: str, **given: Any) -> SinkTarget:
        """A target whose address says what the peer does. given: fields of a SinkTarget, and settings."""
        known = {"contentmode": "structured", "credential": GOOD, "seconds": 10.0}
        fields = {name: given.pop(name, value) for name, value in known.items()}
        return amqp.target(HOST, self.port, address, scheme="amqp", settings=given, **fields)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._said.put(json.loads(line))


@contextmanager
def peer(host: str = "127.0.0.1", silence: int = 0) -> Iterator[Peer]:
    """A running peer. silence: its idle timeout in milliseconds, 0 for none. Skips the test if there is no node."""
    node, home = shutil.which("node"), packages("rhea@3.0.3")
    if node is None:
        pytest.skip("no node: apt-get install nodejs, or put node on PATH")
    arguments = [node, "-e", _SCRIPT.read_text(), host, USER, PASSWORD, str(silence)]
    process = subprocess.Popen(arguments, cwd=home, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Peer(process)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()
