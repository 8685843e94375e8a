"""Liveness and readiness."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from annals.commands.store.database.tables import SCHEMA
from annals.commands.store.log import Store
from tests.support.registries.in_process import Api, create, serving


@pytest.mark.parametrize("prefix", ["/-/", "/"])
def test_alive_and_ready(api: Api, prefix: str) -> None:
    assert api.get(f"{prefix}livez") == {"status": "ok"}
    ready = api.get(f"{prefix}readyz")
    assert ready["status"] == "ok"
    assert ready["position"] == ready["head"] > 0
    assert api.send("POST", f"{prefix}livez").headers["allow"] == "GET, HEAD, OPTIONS"
    assert api.send("HEAD", f"{prefix}readyz").content == b""
    assert api.get(f"{prefix}readyz?waitfor=999&timeout=0") == ready  # a probe ignores `waitfor`


def test_not_ready_behind_the_log(store_url: str) -> None:
    # a server whose read model misses events of the log is not ready; on both databases
    create(store_url)
    with serving(store_url) as api:
        store = Store(store_url)
        with store.engine.begin() as connection:
            connection.execute(text("UPDATE projection SET position = position - 1"))
        store.close()
        answer = api.send("GET", "/-/readyz")
    assert (answer.status_code, answer.json()["status"]) == (503, "unavailable")
    assert answer.json()["position"] == answer.json()["head"] - 1


def test_a_server_whose_store_was_upgraded_meanwhile(store_url: str) -> None:
    """During a rolling update the old server still runs when the new one upgrades their store: it stops to write."""
    create(store_url)
    with serving(store_url) as api:
        api.done("PUT", "/dirs/before", {})
        store = Store(store_url)
        with store.engine.begin() as connection:
            connection.execute(text("UPDATE store SET value = '99' WHERE key = 'schema'"))
        end = store.log_end()
        refused, ready = api.send("PUT", "/dirs/after", {}), api.send("GET", "/-/readyz")
        assert store.log_end() == end
        store.close()
        assert api.get("/dirs/before")["dirid"] == "before"
    reason = (
        f"another release of the program has upgraded the store from schema {SCHEMA} to 99; stop this process, and"
        " start it with that release"
    )
    assert refused.status_code == 503
    assert reason in refused.json()["title"]
    assert (ready.status_code, ready.json()) == (
        503,
        {"status": "unavailable", "reason": f"the store cannot be used: {reason}"},
    )


def test_the_aliases_give_way_to_the_model(api: Api) -> None:
    # HTTP-4: a Group type of that name takes the path at the root, never the one below `/-/`
    source = api.get("/modelsource")
    source["groups"]["livez"] = {"singular": "livezz"}
    api.done("PUT", "/modelsource", source)
    assert api.get("/livez") == {}
    assert api.get("/-/livez") == {"status": "ok"}
