"""The access log: the contents of a line, which requests get one, and what it must not contain."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from annals.api.http.access_log import line_rate
from annals.api.http.access_log.line_rate import AUTO_LIMIT, AccessLogMode, LineRate
from annals.api.http.access_log.route_templates import UNKNOWN_ROUTE, RouteTemplates
from annals.api.http.request import build_request
from annals.api.ops.own_paths import PATH_TEMPLATES
from annals.api.ui.routes import UI_PATHS
from tests.support.registries.in_process import Api, create, serving
from tests.support.subscribing import TOKENS, bearer

TEMPLATES = RouteTemplates((*PATH_TEMPLATES, *UI_PATHS))


@pytest.fixture(autouse=True)
def level(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.INFO, "annals"):
        yield


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """The members of the lines since the last call, without the time that a request took."""
    known = logging.makeLogRecord({}).__dict__.keys() | {"message", "asctime", "duration_ms"}
    found = [
        {name: value for name, value in {**vars(record), "level": record.levelname}.items() if name not in known}
        for record in caplog.records
        if record.name == "annals.access"
    ]
    caplog.clear()
    return found


def test_what_a_line_has(sqlite_url: str, caplog: pytest.LogCaptureFixture) -> None:
    create(sqlite_url)
    with serving(sqlite_url, tokens=TOKENS) as api:
        api.done("PUT", "/dirs/d/files/f$details", {}, **bearer("ann"))
        assert lines(caplog) == [
            {
                "method": "PUT",
                "route": "/{grouptype}/{groupid}/{resourcetype}/{resourceid}$details",
                "path": "/dirs/d/files/f$details",
                "status": 201,
                "caller": "ann",
                "xregcorrelationid": "id1",
                "level": "INFO",
            }
        ]
        api.done("GET", "/dirs/d?inline=files", **bearer("bob"))
        api.send("GET", "/-/links", **bearer("root"))
        api.send("GET", "/dirs", **bearer("unknown"))
        shown = [(line["path"], line["status"], line.get("caller")) for line in lines(caplog)]
        # A request without a valid credential must not be logged with the caller of the request before it.
        assert shown == [("/dirs/d", 200, "bob"), ("/-/links", 200, "root"), ("/dirs", 401, None)]


def test_lines_of_a_refused_request_to_confluents_api(sqlite_url: str, caplog: pytest.LogCaptureFixture) -> None:
    # ACC-111: the line of the request and that of the denial say which subject was asked for
    create(sqlite_url)
    path = "/compat/confluent/subjects/s/versions"
    with serving(sqlite_url, tokens=TOKENS) as api:
        assert api.send("GET", path, **bearer("unknown")).status_code == 401
        assert [record.__dict__["path"] for record in caplog.records if record.name == "annals.denials"] == [path]
        [line] = lines(caplog)
        assert line == {
            "method": "GET",
            "route": "/compat/confluent/subjects/{subject}/versions",
            "path": path,
            "status": 401,
            "level": "INFO",
        }


@pytest.mark.parametrize(("mode", "logged"), [("on", 2 * AUTO_LIMIT), ("auto", AUTO_LIMIT), ("off", 0)])
def test_which_requests_get_a_line(
    mode: str, logged: int, sqlite_url: str, long_second: None, caplog: pytest.LogCaptureFixture
) -> None:
    create(sqlite_url)
    with serving(sqlite_url, access_log=mode) as api:
        api.runner.run(_send_all(api, 2 * AUTO_LIMIT))
    *first_lines, last_line = lines(caplog) or [{}]
    if mode == "auto":
        assert last_line["requests"] == AUTO_LIMIT  # logged as the server stops
        assert len(first_lines) == logged
    else:
        assert len([*first_lines, *([last_line] if last_line else [])]) == logged


@pytest.fixture
def long_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """All requests arrive in one second of the access log, however slow the machine is."""
    monkeypatch.setattr(line_rate, "_WINDOW_SECONDS", 600.0)


async def _send_all(api: Api, count: int) -> None:
    for _ in range(count):
        await api.client.get("/-/livez")


def test_errors_of_the_server_always_get_a_line(
    sqlite_url: str, long_second: None, caplog: pytest.LogCaptureFixture
) -> None:
    create(sqlite_url)
    with serving(sqlite_url) as api:
        api.runner.run(_send_all(api, AUTO_LIMIT + 1))
        with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection:
            connection.execute("ALTER TABLE entity RENAME TO entity_away")
            connection.commit()
        lines(caplog)
        assert api.send("GET", "/dirs/d").status_code == 500
        assert [(line.get("status"), line["level"]) for line in lines(caplog)] == [(None, "ERROR"), (500, "INFO")]


def test_lines_stop_above_a_rate_and_start_again_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[tuple[int, int]] = []

    async def requests() -> list[int]:
        now = [0.0]
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now[0])
        rate = LineRate("auto", lambda count, seconds: reports.append((count, round(seconds))))
        seconds = []
        for count in (2 * AUTO_LIMIT, 2 * AUTO_LIMIT, 10, 10):
            seconds.append(sum(rate.admits() for _ in range(count)))
            now[0] += 1.05
            for _ in range(2):  # the event loop looks at its timers, and calls them
                await asyncio.sleep(0)
        return seconds

    assert asyncio.run(requests()) == [AUTO_LIMIT, 0, 0, 10]
    assert reports == [(3 * AUTO_LIMIT + 10, 3)]


@pytest.mark.parametrize("mode", ["on", "off"])
def test_other_modes_report_nothing(mode: AccessLogMode) -> None:
    reports: list[int] = []

    async def requests() -> None:
        rate = LineRate(mode, lambda count, seconds: reports.append(count))
        assert {rate.admits() for _ in range(3 * AUTO_LIMIT)} == {mode == "on"}
        rate.close()

    asyncio.run(requests())
    assert reports == []


@pytest.mark.parametrize(
    ("raw_path", "route", "path"),
    [
        ("/", "/", "/"),
        ("/dirs/", "/{grouptype}", "/dirs"),
        ("/modelsource", "/modelsource", "/modelsource"),
        (
            "/dirs/d/files/f/versions/1",
            "/{grouptype}/{groupid}/{resourcetype}/{resourceid}/versions/{versionid}",
            "/dirs/d/files/f/versions/1",
        ),
        ("/dirs/d/files/f/meta", "/{grouptype}/{groupid}/{resourcetype}/{resourceid}/meta", "/dirs/d/files/f/meta"),
        ("/-/history/dirs/d", "/-/history/{path}", "/-/history/dirs/d"),
        ("/subscriptions/x/actions/pause", "/subscriptions/{id}/actions/{action}", "/subscriptions/x/actions/pause"),
        (
            "/compat/schemaregistry/v0.2/schemagroups/g",
            "/compat/schemaregistry/v0.2/schemagroups/{group}",
            "/compat/schemaregistry/v0.2/schemagroups/g",
        ),
        ("/compat/confluent/", "/compat/confluent", "/compat/confluent"),
        (
            "/compat/confluent/subjects/a%2Fb/versions/latest",
            "/compat/confluent/subjects/{subject}/versions/{version}",
            "/compat/confluent/subjects/a%2Fb/versions/latest",
        ),
        (
            "/compat/confluent/contexts/.c/schemas/ids/1",
            "/compat/confluent/contexts/{context}/schemas/ids/{id}",
            "/compat/confluent/contexts/.c/schemas/ids/1",
        ),
        ("/compat/confluent/contexts/.c", "/compat/confluent/contexts/{context}", "/compat/confluent/contexts/.c"),
        ("/ui/explore/dirs/d", "/ui/explore/{path}", "/ui/explore/dirs/d"),
        # a secret, and misspelled paths that may have one
        ("/-/subscriptions/x/consent/s", "/-/subscriptions/{id}/consent/{secret}", "/-/subscriptions/x/consent/***"),
        ("/%2D/subscriptions/x/consent/s", "/-/subscriptions/{id}/consent/{secret}", "/-/subscriptions/x/consent/***"),
        ("/-/subscriptions/x/consent/s/t", UNKNOWN_ROUTE, "/-/subscriptions/..."),
        (
            "/-/subscriptions/preview/consent/s",
            "/-/subscriptions/{id}/consent/{secret}",
            "/-/subscriptions/preview/consent/***",
        ),
        ("/a/b/c/d/e/s", UNKNOWN_ROUTE, "/a/b/..."),
        ("/compat/confluent/subjects/s/nothing", UNKNOWN_ROUTE, "/compat/confluent/..."),
        ("/compat/confluent/contexts/.c/v1/metadata/id", UNKNOWN_ROUTE, "/compat/confluent/..."),
        # characters that could end the line or control a terminal
        ("/dirs/a%0Ab%1B[2J", "/{grouptype}/{groupid}", "/dirs/a%0Ab%1B%5B2J"),
    ],
)
def test_routes(raw_path: str, route: str, path: str) -> None:
    scope = {"type": "http", "method": "GET", "scheme": "http", "raw_path": raw_path.encode(), "headers": []}
    assert TEMPLATES.describe(build_request({**scope, "query_string": b"token=s"})) == (route, path)
