"""The log loses its end below a running server: an older backup was restored, or a standby took over without all of it.

The next writes use the positions of lost events again. A server that has read those would mix two logs for ever.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import httpx
import psycopg
import pytest
from sqlalchemy import make_url

from annals.api.compat.confluent.paths import BASE
from annals.api.registry.open_registry import open_registry
from annals.api.settings.settings import Settings
from annals.commands.store.database.known_log_end import LogEndLost
from annals.domain.model.builtin import default_source
from tests.support.registries import in_process
from tests.support.registries.in_process import Api, create
from tests.support.serving import serving
from tests.support.stores import database_of

LOST = re.compile(
    r"the log of the database \(\S+:\d+\) has lost events that this server has read: position 5 is another;"
    r" if this is the right database, restart the server"
)


def model(plural: str) -> dict[str, object]:
    return {"groups": {plural: {"singular": plural.removesuffix("s")}}}


@contextmanager
def backup_of(server: str, database: str) -> Iterator[Callable[[], None]]:
    """Backs up the database. Yields what restores the backup, which ends all connections."""
    name = make_url(database).database
    with psycopg.connect(server, autocommit=True) as administrator:

        def restore() -> None:
            administrator.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
            administrator.execute(f"ALTER DATABASE {name}_backup RENAME TO {name}".encode())

        administrator.execute(f"CREATE DATABASE {name}_backup TEMPLATE {name}".encode())
        yield restore


def test_a_server_notices_that_the_log_has_lost_its_end(postgres_server: str, tmp_path: Path) -> None:
    """All state comes from one log: what only a lost log had is not shown as state of the one that took its place."""
    with database_of(postgres_server) as database:
        create(database)
        with (
            backup_of(postgres_server, database) as restore,
            serving(database, tmp_path) as served,
            httpx.Client(base_url=served.url, timeout=30) as client,
        ):
            with in_process.serving(database, ids="lost") as other:
                other.done("PUT", "/modelsource", model("xdirs"))
                assert client.get("/xdirs").status_code == 200
            restore()
            with in_process.serving(database, ids="new") as other:
                other.done("PUT", "/modelsource", model("ydirs"))
                other.done("PUT", "/ydirs/a", {})
            for method, path in (("GET", "/ydirs/a"), ("GET", "/xdirs"), ("GET", "/"), ("PUT", "/ydirs/q")):
                refused = client.request(method, path, json={} if method == "PUT" else None)
                assert (path, refused.status_code) == (path, 503)
                assert LOST.fullmatch(refused.json()["args"]["error_detail"])
            ready = client.get("/-/readyz")
            assert ready.status_code == 503
            assert LOST.fullmatch(ready.json()["reason"].removeprefix("the store cannot be used: "))
            time.sleep(3)  # the work in the background tries again each second
    log = (tmp_path / "serve.log").read_text()
    assert log.count("the store cannot be used: ") == 1
    assert "deliveries: LogEndLost" not in log
    assert "the search index waits for the database: the log" not in log


def register(api: Api, text: str, *subjects: str) -> None:
    for subject in subjects or ("s",):
        api.done("POST", f"{BASE}/subjects/{subject}/versions", {"schema": text})


def create_groups(api: Api) -> None:
    for name in ("a", "b", "c"):
        api.done("PUT", f"/schemagroups/{name}", {})


#: What the lost log had; what the new one has, not fewer events; a path for whose answers something is kept.
KEPT: Final[dict[str, tuple[Callable[[Api], None], Callable[[Api], None], str]]] = {
    "an answer": (lambda api: register(api, '"int"'), lambda api: register(api, '"long"'), f"{BASE}/schemas/ids/1"),
    "numbers of entities": (create_groups, lambda api: register(api, '"int"', "a", "b", "c"), "/-/counts"),
}


@pytest.mark.parametrize("name", KEPT)
def test_answers_of_a_lost_log_are_not_kept(postgres_server: str, name: str) -> None:
    """A process has only read the events that are lost, and the new log is as long."""
    in_lost_log, in_new_log, path = KEPT[name]
    with database_of(postgres_server) as database:
        create(database, default_source())
        with (
            backup_of(postgres_server, database) as restore,
            in_process.serving(f"{database}?application_name=reader") as reader,
        ):
            with in_process.serving(database, ids="lost") as other:
                in_lost_log(other)
                assert reader.send("GET", path).json() == other.send("GET", path).json()
            restore()
            with in_process.serving(database, ids="new") as other:
                in_new_log(other)
                assert reader.send("GET", path).json() == other.send("GET", path).json()


def test_the_first_definitions_of_a_process_are_noticed_when_they_are_lost(postgres_server: str) -> None:
    """A model that came between the start and the first request; those of the new log may get its position."""
    with database_of(postgres_server) as database:
        create(database)
        other_process = f"{database}?application_name=reader"  # what a process knows goes by the URL
        with (
            backup_of(postgres_server, database) as restore,
            closing(open_registry(Settings(database=other_process))) as registry,
        ):
            with in_process.serving(database, ids="lost") as other:
                other.done("PUT", "/modelsource", model("xdirs"))
                assert "xdirs" in registry.definitions.definitions.model.groups
            restore()
            with in_process.serving(database, ids="new") as other:
                other.done("PUT", "/modelsource", model("ydirs"))
            with pytest.raises(LogEndLost):
                registry.definitions.current(registry.readers.quick_view())
