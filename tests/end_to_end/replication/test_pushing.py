"""A registry pushes its log to another one, which records it in parts."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.end_to_end.replication.unreliable_proxy import unreliable_proxy
from tests.support.polling import until
from tests.support.registries.restarted import TOKEN, WRITER, Registry, registries, wait_until_equal_logs

_LINES = {"content-type": "application/x-ndjson"}


def lines(registry: Registry, after: int = 0, until: int | None = None) -> bytes:
    """A part of a registry's log in the format of a push; up to the end by default."""
    limit = {} if until is None else {"limit": str(until - after)}
    query = {"after": str(after), "documents": "", **limit}
    answer = registry.client(TOKEN).get("/-/log", params=query, headers={"accept": "application/x-ndjson"})
    assert answer.is_success
    return answer.content


def pushed(registry: Registry, body: bytes, after: int, token: str | None = TOKEN, id: str = "in") -> httpx.Response:
    """Pushes a part of another log to a registry; returns the response."""
    with registry.client(token) as client:
        return client.post(f"/-/links/{id}/log", params={"after": after}, content=body, headers=_LINES)


@pytest.mark.parametrize("primary", ["sqlite", "postgresql"])
def test_a_push_copies_the_log(tmp_path: Path, primary: str, request: pytest.FixtureRequest) -> None:
    """LEG-901, LEG-910: a link can push; it copies whole interactions with their ids."""
    databases = {"a": request.getfixturevalue("postgres_url")} if primary == "postgresql" else {}
    with registries(tmp_path, "a", "b", **databases) as (a, b):
        a.fill(2, 5)
        b.link("in", a.url, mode="receive")
        a.link("out", b.url, mode="push", remote="in")
        wait_until_equal_logs(a, b)
        for number in range(5):  # events of links in between are not copied
            a.link(f"rests{number}", b.url, mode="push", enabled=False)
            a.write(f"later/s/{number}", name="written later")
        a.done("DELETE", "/schemagroups/group0")
        wait_until_equal_logs(a, b)
        until(lambda: a.status("out")["position"] == a.head()["position"])
        assert a.status("out")["state"] == b.status("in")["state"] == "active"
        b.verified()
        refused = b.request("PUT", "/schemagroups/mine", {})
        assert (refused.status_code, refused.json()["type"].rpartition("#")[2]) == (400, "readonly")


def test_only_what_is_in_the_scope_of_the_receiver_is_taken_in(tmp_path: Path) -> None:
    """LEG-901: a receiving link copies only entities in its scope."""
    with registries(tmp_path, "a", "b") as (a, b):
        b.link("out", a.url, mode="receive", scope={"groups": ["/schemagroups/wanted"]})
        a.link("out", b.url, mode="push")
        a.write("other/s/1")
        a.write("wanted/s/1")
        a.write("wantedness/s/1")
        until(lambda: b.status("out")["position"] == a.head()["position"])
        assert list(b.done("GET", "/schemagroups")) == ["wanted"]
        b.write("mine/s/1")
        b.verified()


def test_pieces_may_come_twice_and_late_and_never_too_early(tmp_path: Path) -> None:
    """LEG-912: duplicate and late parts change nothing; after a gap the response has the last known position."""
    with registries(tmp_path, "a", "b") as (a, b):
        a.fill(3, 4)
        first, second = a.ids()[1:3]
        one, two = (a.done("GET", f"/-/log/head?asof={id}")["position"] for id in (first, second))
        last = a.head()["position"]
        b.link("in", a.url, mode="receive")
        gap = pushed(b, lines(a, one), one)
        assert (gap.status_code, gap.json()["position"]) == (409, 0)
        assert pushed(b, lines(a, 0, one), 0).json() == {"position": one}
        assert pushed(b, lines(a, 0, two), 0).json() == {"position": two}
        known = b.head()
        assert pushed(b, lines(a, 0, one), 0).json() == {"position": two}
        assert pushed(b, b"", 0).json() == {"position": two}
        assert b.head() == known
        gap = pushed(b, lines(a, two + 1), two + 1)
        assert (gap.status_code, gap.json()["position"]) == (409, two)
        assert pushed(b, lines(a, two), two).json() == {"position": last}
        wait_until_equal_logs(a, b)
        b.verified()


def test_a_piece_that_breaks_off_is_taken_in_as_far_as_it_is_whole(tmp_path: Path) -> None:
    """LEG-910: an incomplete interaction is not recorded."""
    with registries(tmp_path, "a", "b") as (a, b):
        a.fill(3, 4)
        b.link("in", a.url, mode="receive")
        whole = lines(a)
        *_, third = a.ids()
        before = a.done("GET", f"/-/log/head?asof={third}")["position"] - 5  # a Group, its four schemas ...
        broken = whole[: whole.index(f'"xregcorrelationid":"{third}"'.encode()) + 300]
        refused = pushed(b, broken, 0)
        assert refused.status_code == 400
        there = b.status("in")["position"]
        assert 0 < there <= before
        assert b.ids()[1:] == a.ids()[:-1]
        assert pushed(b, lines(a, there), there).is_success
        wait_until_equal_logs(a, b)
        b.verified()


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_large_document_is_pushed_over_a_slow_connection(tmp_path: Path) -> None:
    """LEG-910: each part that has been sent is progress, so a document may take longer than a stalled push may."""
    with registries(tmp_path, "a", "b") as (a, b), unreliable_proxy(b.url) as way:
        with a.client(TOKEN) as client:
            path, headers = "/schemagroups/g/schemas/s", {"content-type": "text/plain", "xregistry-format": "Text/1"}
            assert client.put(path, content=b"x" * 32_000_000, headers=headers).is_success
        way.pause = 0.12  # of 64 KiB: 80 seconds for the document in base64
        b.link("in", a.url, mode="receive")
        a.link("out", way.url, mode="push", remote="in")
        wait_until_equal_logs(a, b, seconds=300)
        until(lambda: a.status("out")["position"] == a.head()["position"])
        assert a.status("out")["state"] == "active"


def test_a_registry_that_was_written_to_itself_takes_no_other_log_in(tmp_path: Path) -> None:
    """LEG-907: a different log is a conflict that the status of the link shows; the registry stays unchanged."""
    with registries(tmp_path, "a", "b") as (a, b):
        a.write("g/s/1")
        b.write("h/s/1")
        b.link("in", a.url, mode="receive")
        before = b.head()["state"]
        refused = pushed(b, lines(a), 0)
        assert (refused.status_code, refused.json()["type"].rpartition("#")[2]) == (409, "diverged")
        assert b.head()["state"] == before
        assert b.status("in")["state"] == "diverged"


@pytest.mark.long
def test_a_server_ends_while_a_push_has_stopped_short(tmp_path: Path) -> None:
    """LEG-910: the whole interactions that arrived before the server stopped are stored."""
    with registries(tmp_path, "a", "b") as (a, b):
        a.fill(3, 4)
        b.link("in", a.url, mode="receive")
        body = lines(a)
        begun = f"POST /-/links/in/log HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
        length = f"Content-Type: application/x-ndjson\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", b.port)) as sender:
            sender.sendall((begun + length).encode() + body[:-9])
            b.stop()
        b.start()
        there, taken = b.status("in")["position"], b.ids()[1:]
        assert taken == a.ids()[: len(taken)]
        assert pushed(b, lines(a, there), there).is_success
        wait_until_equal_logs(a, b)
        b.verified()


_JSON = {"content-type": "application/json"}
#: Members of links by id; each link has its own Group.
_LINKS: dict[str, dict[str, Any]] = {
    "in": {"mode": "receive"},
    "other": {"mode": "pull"},
    "rests": {"mode": "receive", "enabled": False},
    "promoted": {"mode": "receive"},
}
#: Link, token, headers and query of a push, and the status of the response.
_PUSHES: list[tuple[str, str | None, dict[str, str], str, int]] = [
    ("in", TOKEN, _LINES, "after=0", 200),
    ("in", TOKEN, _LINES, "", 200),
    ("nowhere", TOKEN, _LINES, "after=0", 404),
    ("other", TOKEN, _LINES, "after=0", 409),
    ("rests", TOKEN, _LINES, "after=0", 409),
    ("promoted", TOKEN, _LINES, "after=0", 409),
    ("in", WRITER, _LINES, "after=0", 403),
    ("in", None, _LINES, "after=0", 401),
    ("in", TOKEN, _JSON, "after=0", 415),
    ("in", TOKEN, {**_LINES, "content-encoding": "gzip"}, "after=0", 400),
    ("in", TOKEN, _LINES, "after=-1", 400),
    ("in", TOKEN, _LINES, "before=1", 400),
]


def test_permissions_of_a_push(tmp_path: Path) -> None:
    """LEG-901: only administrators may push, and only to an enabled, unpromoted link of the mode `receive`."""
    with registries(tmp_path, "b") as (b,):
        for id, members in _LINKS.items():
            b.link(id, f"http://127.0.0.1:1/{id}", scope={"groups": [f"/schemagroups/{id}"]}, **members)
        b.done("POST", "/-/links/promoted/actions/promote")
        for id, token, headers, query, status in _PUSHES:
            with b.client(token) as client:
                answer = client.post(f"/-/links/{id}/log?{query}", content=b"", headers=headers)
            assert answer.status_code == status, (id, token, headers, query, answer.text)


@pytest.mark.parametrize("primary", ["sqlite", "postgresql"])
def test_a_push_lags_by_what_the_other_end_has_not_confirmed(
    tmp_path: Path, primary: str, request: pytest.FixtureRequest
) -> None:
    """LEG-901: the status of a link has the lag of the other registry, also while that does not respond."""
    databases = {"a": request.getfixturevalue("postgres_url")} if primary == "postgresql" else {}
    with registries(tmp_path, "a", "b", **databases) as (a, b):
        b.link("in", a.url, mode="receive")
        a.link("out", b.url, mode="push", remote="in")
        a.write("g/s/1")
        until(lambda: a.status("out")["lag"] == {"positions": 0, "seconds": 0})
        confirmed = a.head()["position"]
        b.stop()
        for number in range(3):
            a.write(f"later/s/{number}")
            found = a.status("out")
            assert found["position"] == confirmed
            assert found["lag"]["positions"] == found["head"]["position"] - confirmed > number
            assert found["lag"]["seconds"] > 0
        until(lambda: a.status("out")["state"] == "failing")
        lag = a.status("out")["lag"]["positions"]
        assert lag == a.head()["position"] - confirmed
        assert f'annals_link_lag_positions{{link="out"}} {float(lag)}' in a.request("GET", "/-/metrics").text
        b.start()
        until(lambda: a.status("out")["lag"] == {"positions": 0, "seconds": 0})
        wait_until_equal_logs(a, b)


@pytest.mark.parametrize("dialect", ["log", "xregistry"])
def test_a_push_without_contact_lags_by_the_whole_log(tmp_path: Path, dialect: str) -> None:
    """LEG-901: if the other registry never responded, no position is confirmed."""
    with registries(tmp_path, "a") as (a,):
        a.write("g/s/1")
        a.link("out", "http://127.0.0.1:1", mode="push", dialect=dialect)
        until(lambda: a.status("out")["state"] == "failing")
        found = a.status("out")
        assert (found["position"], found["lag"]) == (0, {"positions": a.head()["position"]})
