"""The table of refused writes: its content, its limit, and who may read it."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import create_engine, inspect

from annals.api.settings.settings import Settings
from annals.domain.model.builtin import default_source
from annals.projections.access import denied_writes
from annals.projections.access.denied_writes import MAX_PENDING, DeniedWrite, DeniedWrites
from tests.api.auth.test_basic import basic
from tests.support.console import Annals, annals, folder
from tests.support.registries.in_process import Api, create, serving

__all__ = ["annals", "folder"]

TOKENS = {
    "admin-secret": {"name": "ada", "role": "admin"},
    "reader-secret": {"name": "rita", "role": "reader"},
    "group-secret": {"name": "gil", "groups": {"/schemagroups/mine": "writer"}},
    "other-secret": {"name": "otto", "role": "writer"},
}
ADMIN = {"authorization": "Bearer admin-secret"}
READER = {"authorization": "Bearer reader-secret"}
GIL = {"authorization": "Bearer group-secret"}
PLACE = {"x_forwarded_for": "192.0.2.9"}


@pytest.fixture
def api(store_url: str) -> Iterator[Api]:
    create(store_url, default_source())
    options: dict[str, Any] = {"tokens": json.dumps(TOKENS), "api_keys": True, "denials_kept": 20}
    with serving(store_url, trusted_proxies="127.0.0.1", rate_writes=0.001, **options) as api:
        yield api


def stored_denials(api: Api, query: str = "") -> Any:
    """The stored denials, after a run of the periodic tasks."""
    api.runner.run(api.app.state.periodic_tasks.run_once())
    return api.send("GET", f"/-/denials{query}", **ADMIN).json()


def row(status: int, reason: str, method: str = "PUT", path: str = "", **members: Any) -> dict[str, Any]:
    return {"address": "192.0.2.9", "method": method, "path": path, "status": status, "reason": reason, **members}


def test_what_is_kept(api: Api, store_url: str, annals: Annals) -> None:
    """ACC-116: refused writes are stored with the known sender, without credential, query and body; reads are not."""
    key = api.send("POST", "/-/keys", {"name": "ci", "role": "reader"}, **ADMIN).json()
    by_key = {"authorization": f"Bearer {key['key']}"}
    guess, password = {"authorization": "Bearer guess-secret"}, {"authorization": basic("ada", "guess-secret")}
    foreign = {**ADMIN, "origin": "https://evil.example"}
    rita = {"caller": "rita", "authenticator": "tokens"}
    gil = {"caller": "gil", "authenticator": "tokens"}
    mine, lookup = "/schemagroups/mine", "/compat/confluent/subjects/:.other:s"
    refused: tuple[tuple[dict[str, str], dict[str, Any]], ...] = (
        ({}, row(401, "no credential", path=mine)),
        ({}, row(401, "no credential", path="/no/route/...")),
        (guess, row(401, "credential: unknown", path=mine)),
        (password, row(401, "credential: unknown", path=mine, caller="ada")),
        (READER, row(403, "forbidden", path=mine, **rita)),
        (READER, row(429, "too_many_requests", path=mine, **rita)),
        (by_key, row(403, "forbidden", "DELETE", mine, caller="key:ci", authenticator="keys", keyid=key["id"])),
        (foreign, row(403, "cross_origin", path=mine)),
        (GIL, row(404, "hidden", "POST", lookup, **gil)),
    )
    for headers, denied in refused:
        path = denied["path"].replace("...", "of/any/length/secret")  # the stored path is shortened as in log lines
        answer = api.send(denied["method"], f"{path}?x=query-secret", {"schema": '"int"'}, **PLACE, **headers)
        assert answer.status_code == denied["status"], (denied, answer.text)
    for method, path, headers in (
        *(("GET", "/", {}), ("HEAD", "/", {}), ("GET", "/", guess), ("GET", mine, foreign)),
        *(("OPTIONS", "/-/keys", {}), ("GET", "/-/keys", READER), ("GET", "/schemagroups/other", GIL)),
    ):
        assert api.send(method, path, **PLACE, **headers).status_code < 500
    assert api.send("PUT", mine, {}, host="evil.example", **ADMIN).status_code == 421
    assert api.send("PUT", mine, {"epoch": "x"}, authorization="Bearer other-secret").status_code == 400
    found = stored_denials(api)
    assert [entry.pop("number") for entry in found] == list(range(len(refused), 0, -1))
    assert all(entry.pop("time").startswith("20") for entry in found)
    assert found == [denied for _, denied in reversed(refused)]
    check_no_secrets(store_url, key["key"])
    printed = annals("auth", "denials", "--limit", "1", "--database", store_url).out.split("\t")
    assert printed[1:] == ["404", "hidden", "POST", lookup, "192.0.2.9", "gil", "\n"]
    assert json.loads(annals("auth", "denials", "--limit", "1", "--json", "--database", store_url).out)["status"] == 404


def check_no_secrets(store_url: str, key: str) -> None:
    """ACC-113: the table has no credential, no query and no body."""
    with closing(DeniedWrites(store_url)) as stored:
        text = repr(stored.read(1000))
    assert not [secret for secret in ("secret", key, "body") if secret in text]


def test_who_reads_them(api: Api) -> None:
    """ACC-116: administrators of the registry read them in pages, newest first."""
    for number in range(3):
        assert api.send("PUT", f"/dirs/d{number}", {}, **PLACE).status_code == 401
    assert [entry["path"] for entry in stored_denials(api)] == ["/dirs/d2", "/dirs/d1", "/dirs/d0"]
    first = api.send("GET", "/-/denials?limit=2", **ADMIN)
    assert first.headers["cache-control"] == "private, no-store"
    assert "http://h/r/-/denials?limit=2&after=2>;rel=next" in first.headers["link"]
    last = api.send("GET", "/-/denials?limit=2&after=2", **ADMIN)
    assert [entry["number"] for entry in (*first.json(), *last.json())] == [3, 2, 1]
    assert "rel=next" not in last.headers.get("link", "")
    assert [api.send("GET", "/-/denials", **headers).status_code for headers in (READER, GIL, {})] == [403, 403, 401]
    for query in ("limit=0", "limit=1001", "limit=x", "after=0", "before=1", "limit=1&limit=2"):
        assert api.send("GET", f"/-/denials?{query}", **ADMIN).status_code == 400, query
    assert api.send("DELETE", "/-/denials", **ADMIN).status_code == 405


def test_without_the_setting_there_is_no_table(store_url: str, annals: Annals) -> None:
    """ACC-116: by default, denials are not stored, and the path answers `not_available`."""
    create(store_url)
    with serving(store_url, tokens=json.dumps(TOKENS)) as api:
        assert api.send("PUT", "/dirs/d", {}).status_code == 401
        answer = api.send("GET", "/-/denials", **ADMIN)
        assert (answer.status_code, answer.json()["type"].rpartition("#")[2]) == (400, "not_available")
        assert "ANNALS_DENIALS_KEPT" in answer.json()["detail"]
        url = store_url.replace("postgresql:", "postgresql+psycopg:", 1)
        assert "denied_write" not in inspect(create_engine(url)).get_table_names()
    assert annals("auth", "denials", "--database", store_url).out == ""
    assert Settings().denials_kept == 0


def denied(number: int) -> DeniedWrite:
    return DeniedWrite("2026-01-01T00:00:00Z", "192.0.2.1", "PUT", f"/dirs/d{number}", 403, "forbidden")


def test_the_bound(store_url: str) -> None:
    """ACC-116: the oldest rows are deleted, also those of other processes; a full queue drops new denials."""
    create(store_url)
    with closing(DeniedWrites(store_url, 5)) as one, closing(DeniedWrites(store_url, 5)) as other:
        one.open()
        other.open()
        for number in range(12):
            (one, other)[number % 2].note(denied(number))
            (one, other)[number % 2].write()
        assert [entry.path for _, entry in one.read(100)] == [f"/dirs/d{number}" for number in range(11, 6, -1)]
        for number in range(MAX_PENDING + 10):
            one.note(denied(number))
        one.write()
        assert [entry.path for _, entry in other.read(2)] == [f"/dirs/d{MAX_PENDING - number}" for number in (1, 2)]
        other.note(denied(1))
    with closing(DeniedWrites(store_url, 5)) as after:
        assert after.read(1)[0][1] == denied(1), "what waits is written at the end"


def test_a_flood_is_limited(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """ACC-112, ACC-116: ten rows a second for a reason; the next row counts the omitted ones; reads do not count."""
    now = [0.0]
    monkeypatch.setattr("annals.api.http.access_log.rate_by_reason.time.monotonic", lambda: now[0])
    for _ in range(30):
        api.send("GET", "/dirs", authorization="Bearer guess")
    for _ in range(15):
        assert api.send("PUT", "/dirs/d", {}).status_code == 401
    assert [entry["reason"] for entry in stored_denials(api)] == ["no credential"] * 10
    now[0] = 1.0
    api.send("PUT", "/dirs/e", {})
    found = stored_denials(api)
    assert (len(found), found[0]["path"], found[0]["leftout"]) == (11, "/dirs/e", 5)


def test_a_locked_store_delays_no_request(sqlite_url: str, caplog: pytest.LogCaptureFixture) -> None:
    """ACC-116: requests are answered while another program locks the store; rows are written afterwards."""
    create(sqlite_url)
    with serving(sqlite_url, tokens=json.dumps(TOKENS), denials_kept=5) as api:
        with create_engine(sqlite_url).connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            begun = time.monotonic()
            assert api.send("PUT", "/dirs/d", {}).status_code == 401
            assert time.monotonic() - begun < denied_writes._LOCK_SECONDS
            caplog.set_level(logging.WARNING, "annals")
            assert stored_denials(api) == []
            assert "denied writes could not be stored" in caplog.text
            connection.exec_driver_sql("ROLLBACK")
        assert [entry["path"] for entry in stored_denials(api)] == ["/dirs/d"]
