"""The guides to operation, archives, backups, upgrades, migration and segments do what they say."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from typing import Final

import httpx
import pytest
from sqlalchemy import create_engine, make_url, text

from tests.support.guides import followed
from tests.support.oidc import provider
from tests.support.serving import annals

_FILES: Final = {"groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file"}}}}}


def test_operation(tmp_path: Path) -> None:
    with followed("guides/operation.md", tmp_path) as guide:
        guide.follow()


@pytest.mark.uses("Node.js")
def test_the_internet(tmp_path: Path) -> None:
    home = tmp_path / "provider"
    home.mkdir()
    with provider(home, "https://registry.example.com") as running:
        names = {"https://login.example.com/realms/main": running.issuer}
        with followed("guides/internet.md", tmp_path, names) as guide:
            guide.follow()


@pytest.fixture
def databases(postgres_url: str) -> Iterator[dict[str, str]]:
    """`names` that replace the two databases in the guide to backups with databases on the test's server."""
    server = make_url(postgres_url).set(query={})
    names = {name: f"{name}_{token_hex(4)}" for name in ("annals_restored", "annals")}
    engine = create_engine(server.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {names['annals']}"))
        urls = {name: server.set(database=real).render_as_string(hide_password=False) for name, real in names.items()}
        try:
            yield {f"postgresql://user@host/{name}": url for name, url in urls.items()} | {
                " annals_restored": f" {names['annals_restored']}"
            }
        finally:
            for name in names.values():
                connection.execute(text(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
    engine.dispose()


@pytest.mark.skipif(shutil.which("pg_dump") is None, reason="no pg_dump: apt-get install postgresql-client")
def test_backup_and_upgrade(databases: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "groups.json").write_text('{"schemagroups": {"weather": {}}}')
    store = databases["postgresql://user@host/annals"]
    assert annals("import", "groups.json", cwd=tmp_path, ANNALS_DATABASE=store).returncode == 0
    with followed("guides/backup.md", tmp_path, databases) as guide:
        guide.serve()
        guide.follow()
    assert (tmp_path / "restored.json").read_text().startswith('{"specversion"')
    with followed("guides/upgrade.md", tmp_path) as guide:
        guide.serve()
        guide.follow()


def test_migration(tmp_path: Path) -> None:
    """The old server is a second Annals registry."""
    with followed("guides/migrate.md", tmp_path) as guide:
        old = guide.serve("--port 8081 --database sqlite:///old.db").url
        guide.serve()
        httpx.put(f"{old}/modelsource", json=_FILES).raise_for_status()
        for content in ("hello", "hello again"):
            kind = {"Content-Type": "text/plain"}
            httpx.post(f"{old}/dirs/d/files/f", content=content, headers=kind).raise_for_status()
        guide.follow()
        new = guide.names["http://127.0.0.1:8080"]  # the page has started it again
        versions = [httpx.get(f"{url}/dirs/d/files/f/versions").json() for url in (old, new)]
    preserved = ("versionid", "createdat", "modifiedat", "ancestorid", "contenttype", "isdefault")
    before, after = ([{name: row[name] for name in preserved} for row in found.values()] for found in versions)
    assert before == after


def test_moving_schemas(tmp_path: Path) -> None:
    """The other schema registry is a second Annals registry."""
    record = {"subject": "kept", "version": 1, "id": 100_001, "schema": '"long"', "deleted": False}
    key = {"keytype": "SCHEMA", "subject": "kept", "version": 1, "magic": 1}
    (tmp_path / "schemas.jsonl").write_text(json.dumps({"key": key, "value": record}))
    with followed("guides/move.md", tmp_path) as guide:
        old = f"{guide.serve('--port 8081 --database sqlite:///old.db').url}/compat/confluent"
        new = f"{guide.serve().url}/compat/confluent"
        for subject in ("orders-value", "users-value"):
            body = {"schema": f'{{"type": "record", "name": "{subject[:5]}", "fields": []}}'}
            httpx.post(f"{old}/subjects/{subject}/versions", json=body).raise_for_status()
        guide.follow()
        first, second = (httpx.get(f"{url}/schemas").json() for url in (old, new))
    assert len(first) == 2 and first == second


def test_archive(tmp_path: Path) -> None:
    with followed("guides/archive.md", tmp_path) as guide:
        guide.serve()
        guide.follow()


def test_segments(tmp_path: Path) -> None:
    with followed("guides/segments.md", tmp_path) as guide:
        guide.serve()
        guide.follow()
