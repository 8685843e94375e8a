"""Events name the address of the first start as their source, unless a public URL is configured (EV-12)."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from annals.api.settings.settings import Settings, server_url
from annals.commands.store.log import Store
from tests.support import serving
from tests.support.console import Annals


def served(database: str, folder: Path, *options: str) -> tuple[str, list[str], Any, str]:
    """Writes a Group to a server on a free port.

    Returns the address of the server, the sources of all events, the event families that subscriptions offer, and
    the log of the server.
    """
    with serving.serving(database, folder, *options) as server:
        root = server.url
        name = "g" + root.rpartition(":")[2]
        assert httpx.put(f"{root}/schemagroups/{name}", json={}).status_code == 201
        sources = [event["source"] for event in httpx.get(f"{root}/-/events").json()]
        offered = httpx.options(f"{root}/subscriptions").json()["families"]
    return root, sources, offered, (folder / "serve.log").read_text()


def test_the_port_really_had_is_what_events_name(store_url: str, folder: Path) -> None:
    # EV-12: the first start stores the address; a later start on another port keeps it, and logs a warning
    first, sources, offered, log = served(store_url, folder)
    assert set(sources) == {first} and "still name" not in log
    assert offered["xregistry"] == {"source": first}
    second, sources, offered, log = served(store_url, folder)
    assert second != first and set(sources) == {first} and len(sources) == 4
    assert offered["schemaregistry"] == {"source": f"{first}/compat/schemaregistry/v0.2"}
    assert f"still name {first}, which this store has recorded, while the server listens at {second};" in log
    assert "ANNALS_PUBLIC_URL" in log


def test_all_addresses_are_this_machine(sqlite_url: str, folder: Path) -> None:
    root, sources, *_ = served(sqlite_url, folder, "--host", "0.0.0.0", "--open")
    assert set(sources) == {root.replace("0.0.0.0", "127.0.0.1")}


def test_the_console_keeps_the_first_address(annals: Annals, sqlite_url: str, folder: Path) -> None:
    # EV-12: events of an import have the source of the server's events
    first, *_ = served(sqlite_url, folder)
    (folder / "more.json").write_text(json.dumps({"schemagroups": {"imported": {}}}))
    assert annals("import", "more.json", "--database", sqlite_url).code == 0
    with closing(Store(sqlite_url)) as store, store.engine.connect() as connection:
        recorded = connection.exec_driver_sql("SELECT registry_url FROM interaction ORDER BY last").all()
    assert recorded == [(first,)] * 3


def test_a_store_created_by_the_console_uses_the_settings(
    annals: Annals, sqlite_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # EV-12: a later server keeps the address, because events name it
    monkeypatch.setenv("ANNALS_PORT", "9123")
    (folder / "some.json").write_text(json.dumps({"schemagroups": {"imported": {}}}))
    assert annals("import", "some.json", "--database", sqlite_url).code == 0
    _, sources, _, log = served(sqlite_url, folder)
    assert set(sources) == {"http://127.0.0.1:9123"}
    assert "still name http://127.0.0.1:9123" in log


@pytest.mark.parametrize(
    ("host", "port", "had", "address"),
    [
        ("127.0.0.1", 8080, 0, "http://127.0.0.1:8080"),
        ("0.0.0.0", 9000, 0, "http://127.0.0.1:9000"),
        ("::", 0, 9001, "http://[::1]:9001"),
        ("registry.internal", 0, 0, "http://registry.internal:8080"),
    ],
)
def test_addresses_of_settings(host: str, port: int, had: int, address: str) -> None:
    assert server_url(Settings(host=host, port=port), had) == address
