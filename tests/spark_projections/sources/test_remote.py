"""The log over HTTP: connections that break, callers who may not read all events, servers that are no registries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from annals.spark_projections.sources import remote_log
from annals.spark_projections.sources.remote_log import RemoteLog, RemoteLogError, UnreachableRegistry
from tests.spark_projections.served_registry import ServedLog, log_rows
from tests.spark_projections.sources.breaking_proxy import breaking_proxy
from tests.support.faulty_proxy import Answer, faulty_proxy
from tests.support.registries.subscribed import registry as subscribed

TOKENS = {"ada": {"name": "ada", "role": "admin"}, "rita": {"name": "rita", "role": "reader"}, "nemo": {"name": "nemo"}}


@pytest.fixture(autouse=True)
def connections() -> None:
    """Drops the client of an earlier test."""
    remote_log._client.cache_clear()


@pytest.mark.parametrize("coding", ["identity", "gzip, zstd"])
@pytest.mark.parametrize("lives", [[100, 700], [3000] * 5, [50_000, 1, 20_000]])
@pytest.mark.long
def test_broken_connections_resume_after_the_last_row(registry: ServedLog, lives: list[int], coding: str) -> None:
    # EV-79: each event once, wherever in a line the connection ended; a compressed one may end before the first row
    found = registry.rows()
    remote_log._client().headers["accept-encoding"] = coding
    with breaking_proxy(registry.url, lives) as url:
        log = RemoteLog(url)
        assert list(log.rows(0, found[-1].position)) == found
        assert log.head().position == found[-1].position


def test_an_unreachable_registry_is_reported(registry: ServedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    # the reader gives up after MAX_FAILURES
    monkeypatch.setattr(remote_log, "MAX_FAILURES", 2)
    with breaking_proxy(registry.url, [100] * 50) as url, pytest.raises(RemoteLogError, match="cannot be read"):
        list(RemoteLog(url).rows(0, 10))


def test_an_address_without_a_protocol_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # no later try can succeed, so a follower does not wait for it
    monkeypatch.setattr(remote_log, "MAX_FAILURES", 0)
    with pytest.raises(RemoteLogError, match="cannot be read") as found:
        list(RemoteLog("htp://127.0.0.1:1").rows(0, 10))
    assert not isinstance(found.value, UnreachableRegistry)


def test_passwords_are_not_shown(registry: ServedLog) -> None:
    url = registry.url.replace("//", "//ada:s3cret@") + "/nowhere"
    with pytest.raises(RemoteLogError) as found:
        RemoteLog(url).head()
    place = f"{registry.url}/nowhere/-/log/head"
    assert str(found.value) == f"{place} answers 404: The targeted entity (/nowhere/-/log/head) cannot be found"


def test_restricted_callers_get_their_part(sqlite_url: str, tmp_path: Path) -> None:
    # EV-79: only admins get events of subscriptions; for others the log continues after them
    with subscribed(sqlite_url, tmp_path) as open_to_all:
        for name in ("a", "b"):
            open_to_all.write(f"{name}/s/1")
            open_to_all.subscribe("http://127.0.0.1:9/")
    found = log_rows(sqlite_url)
    with subscribed(sqlite_url, tmp_path, ANNALS_TOKENS=json.dumps(TOKENS)) as guarded:
        url, end = guarded.served.url, found[-1].position
        assert list(RemoteLog(url, "ada").rows(0, end)) == found
        seen = [row for row in found if not row.stream.startswith("/subscriptions/")]
        assert len(seen) == len(found) - 2
        assert list(RemoteLog(url, "rita").rows(0, end)) == seen
        assert list(RemoteLog(url, "rita").rows(end - 1, end)) == []
        for token, status in ((None, 401), ("else", 401), ("nemo", 403)):
            with pytest.raises(RemoteLogError, match=f"answers {status}"):
                RemoteLog(url, token).head()


def test_a_shorter_log_is_reported(registry: ServedLog) -> None:
    # EV-79: a reader does not wait for an end that the log does not have
    end = registry.rows()[-1].position
    with pytest.raises(RemoteLogError, match=f"ends at position {end}"):
        list(RemoteLog(registry.url).rows(end - 3, end + 1))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"<!DOCTYPE html><title>Welcome</title>", "is not JSON"),
        (b"\xff", "is not JSON"),
        (b"[]", "has no position and chain"),
        (b'{"position":1}', "has no position and chain"),
    ],
)
def test_answers_of_other_servers_are_reported(content: bytes, problem: str) -> None:
    # the message has the URL, because a page of a proxy or of a sign-in comes with the status 200
    with faulty_proxy("", lambda method, path: Answer(200, {}, content)) as proxy:
        with pytest.raises(RemoteLogError) as found:
            RemoteLog(proxy.url.replace("//", "//ada:s3cret@")).head()
        assert str(found.value) == f"{proxy.url} is no registry: /-/log/head {problem}"


@pytest.mark.parametrize("path", ["/schemagroups", "/nothing"])
def test_other_servers_are_reported(registry: ServedLog, path: str) -> None:
    # the message has the URL and the status of the response
    with pytest.raises(RemoteLogError, match=f"{path}/-/log/head answers 404"):
        RemoteLog(registry.url + path).head()
