"""A link stops immediately, even if the other registry does not respond."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.polling import until
from tests.support.registries.restarted import Registry, registries


class Silent:
    """A server that accepts connections and never responds."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def next_request(self) -> socket.socket:
        """The next connection, after a whole request has arrived on it."""
        connection, _ = self._listening.accept()
        found = b""
        while b"\r\n\r\n" not in found:
            found += connection.recv(4096)
        return connection

    def close(self) -> None:
        self._listening.close()


@contextmanager
def silent() -> Iterator[Silent]:
    server = Silent()
    try:
        yield server
    finally:
        server.close()


def _rests(registry: Registry, url: str) -> None:
    registry.link("a", url, enabled=False)


def _goes(registry: Registry, url: str) -> None:
    registry.done("DELETE", "/-/links/a")


def _stops(registry: Registry, url: str) -> None:
    registry.stop()


@pytest.mark.parametrize(
    "ends", [_rests, pytest.param(_goes, marks=pytest.mark.long), pytest.param(_stops, marks=pytest.mark.long)]
)
def test_an_answer_that_does_not_come_is_not_waited_for(tmp_path: Path, ends: object) -> None:
    """LEG-901: a link that waits for a response can be paused, deleted or stopped."""
    assert callable(ends)
    with registries(tmp_path, "b") as (b,), silent() as other:
        b.link("a", other.url)
        with other.next_request() as connection:
            ends(b, other.url)
            connection.settimeout(15)
            assert connection.recv(1) == b""


@pytest.mark.long
def test_a_changed_link_goes_on_at_once(tmp_path: Path) -> None:
    """LEG-901: a change of a link takes effect immediately."""
    with registries(tmp_path, "a", "b") as (a, b), silent() as other:
        elsewhere = {"groups": ["/schemagroups/elsewhere"]}
        b.link("silent", other.url, scope=elsewhere)
        with other.next_request():
            a.write("g/s/1")
            b.link("silent", other.url, scope=elsewhere, enabled=False)
            b.link("a", a.url, scope={"groups": ["/schemagroups/g"]})
            until(lambda: b.request("GET", "/schemagroups/g/schemas/s").status_code == 200, 15)
