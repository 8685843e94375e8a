"""A lost archive shows in health, metrics and the server's log, and in each response that needs it."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import pytest

from annals.api.ops import archive_monitor
from tests.support.archives import SMALL, archive_until, forget_cached_files, open_store
from tests.support.registries.in_process import Api, create, serving


@pytest.fixture(autouse=True)
def eager_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_monitor.ArchiveMonitor.__init__, "__defaults__", (0.0,))


def test_a_lost_archive_is_reported(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "archive"
    create(sqlite_url)
    with serving(sqlite_url) as api:
        for number in range(20):
            api.done("PUT", "/dirs/d", {"name": f"n{number}"})
        await_metrics(api, annals_archive_position=0.0, annals_archive_available=1.0)
        with open_store(sqlite_url) as store:
            archive_until(store, sqlite_url, str(place), 15, SMALL)
        await_metrics(api, annals_archive_position=15.0, annals_archive_available=1.0)
        assert "archive" not in api.get("/-/readyz")
        place.rename(tmp_path / "away")
        forget_cached_files(monkeypatch)
        with caplog.at_level(logging.WARNING, logger="annals.archive"):
            await_metrics(api, annals_archive_position=15.0, annals_archive_available=0.0)
        assert f"the archive {place} lacks" in api.get("/-/readyz")["archive"]
        [line] = [record for record in caplog.records if record.name == "annals.archive"]
        assert line.levelname == "ERROR"
        answer = api.send("GET", "/-/history/dirs/d")
        assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")
        assert answer.json()["type"].endswith("#archive_unavailable")
        assert answer.json()["args"]["archive"] == str(place)
        assert answer.json()["args"]["first"] == "1"
        assert api.get("/dirs/d")["name"] == "n19"
        api.done("PUT", "/dirs/d", {"name": "written"})
        assert api.get("/dirs/d?asof=10")["name"]
        (tmp_path / "away").rename(place)
        forget_cached_files(monkeypatch)
        await_metrics(api, annals_archive_position=15.0, annals_archive_available=1.0)
        assert api.send("GET", "/-/history/dirs/d").status_code == 200


def test_a_short_url_needs_no_archive(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create(sqlite_url)
    with serving(sqlite_url) as api:
        api.done("PATCH", "/capabilities", {"shortself": True})
        for name in ("first", "second"):
            api.done("PUT", "/dirs/d", {"name": name})
        short = api.get("/dirs/d")["shortself"].removeprefix("http://h/r")
        before = api.send("GET", short).headers["location"]
        with open_store(sqlite_url) as store:
            end = store.log_end().position
            archive_until(store, sqlite_url, str(tmp_path / "archive"), end)
        (tmp_path / "archive").rename(tmp_path / "away")
        forget_cached_files(monkeypatch)
        assert api.send("GET", short).headers["location"] == before


def await_metrics(api: Api, **expected: Any) -> None:
    """Waits until the metrics have these values: the monitor checks the archive in its own thread."""
    found: dict[str, float] = {}
    for _ in range(200):
        lines = api.send("GET", "/-/metrics").text.splitlines()
        found = {name: float(value) for name, _, value in (line.partition(" ") for line in lines) if name in expected}
        if found == expected:
            return
        time.sleep(0.05)
    raise AssertionError(f"{found}, not {expected}")
