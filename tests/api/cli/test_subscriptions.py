"""`annals subscriptions` and `annals secrets`, on both databases."""

from __future__ import annotations

import json
from base64 import b64encode
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from annals.commands.store.database.engine import WRITING
from annals.commands.store.log import Store
from annals.commands.store.secrets import Vault
from annals.domain.decisions.world import Secret
from annals.projections.database import drivers, state_database
from annals.projections.subscriptions.sequence import sequence_of
from annals.projections.subscriptions.state import tables
from annals.projections.subscriptions.state.delivery_record import STATES
from tests.support.console import Annals

BODY: dict[str, Any] = {"sink": "https://93.184.216.34/in", "protocol": "HTTP"}
KEYS = [b64encode(bytes([number]) * 32).decode() for number in (1, 2)]


@pytest.fixture
def url(store_url: str, annals: Annals, tmp_path: Path) -> str:
    """The URL of a store with a registry that has a Group."""
    (tmp_path / "registry.json").write_text('{"schemagroups": {"g": {}}}')
    assert annals("import", tmp_path / "registry.json", "--database", store_url).code == 0
    return store_url


def create_subscription(annals: Annals, url: str, tmp_path: Path, **more: Any) -> str:
    (tmp_path / "subscription.json").write_text(json.dumps({**BODY, **more}))
    ended = annals("subscriptions", "create", tmp_path / "subscription.json", "--database", url)
    assert ended.code == 0, ended.err
    return ended.out.strip()


def test_create_update_and_delete_a_subscription(annals: Annals, url: str, tmp_path: Path) -> None:
    # SUB-501 to SUB-509: an administrator can do with the console what the API does
    id = create_subscription(annals, url, tmp_path)
    row = annals("subscriptions", "list", "--database", url).out.strip().split("\t")
    assert row == [id, "active", "HTTP", "0", "0", BODY["sink"]]
    assert json.loads(annals("subscriptions", "list", "--json", "--database", url).out)["id"] == id
    shown = json.loads(annals("subscriptions", "show", id, "--database", url).out)
    assert shown["sink"] == BODY["sink"] and shown["status"]["state"] == "active"
    assert annals("subscriptions", "pause", id, "--database", url).out == "paused\n"
    assert annals("subscriptions", "list", "--state", "active", "--database", url).out == ""
    assert annals("subscriptions", "resume", id, "--database", url).out == "active\n"
    wrong = annals("subscriptions", "replay", id, "--from", "yesterday", "--database", url)
    assert wrong.code == 2 and wrong.err.startswith("annals: --from: an RFC 3339 time is needed: ")
    for state in STATES:
        assert annals("subscriptions", "list", "--state", state, "--database", url).code == 0
    assert annals("subscriptions", "replay", id, "--from", "1", "--database", url).code == 0
    again = annals("subscriptions", "replay", id, "--from", "2020-01-01T00:00:00Z", "--database", url)
    assert again.code == 1 and "another replay is still running" in again.err  # no deliverer has started the first one
    assert annals("subscriptions", "delete", id, "--database", url).out == f"{id} is deleted\n"
    gone = annals("subscriptions", "show", id, "--database", url)
    assert gone.code == 1 and "cannot be found" in gone.err
    verified = annals("log", "verify", "--database", url)
    assert verified.code == 0 and "no findings" in verified.out


def test_dead_letters(annals: Annals, url: str, tmp_path: Path) -> None:
    # SUB-831, SUB-507: dead letters are printed with their sequence; a redelivery is recorded, a refused one is not
    id = create_subscription(annals, url, tmp_path)
    state_database.create_tables(url, tables.METADATA)
    at = sequence_of(5, 0)
    with closing(Store(url)) as store, store.engine.execution_options(**{WRITING: True}).begin() as connection:
        row = (id, at, "rejected", "400", "no", 1, 1767323045.0, 1767323045.0)
        drivers.database_of(connection).insert(tables.deadletter, [row])
    ended = annals("subscriptions", "deadletters", id, "--database", url)
    assert ended.code == 0, ended.err
    assert ended.out.startswith("00000000000000000005.00\t2026-01-02T03:04:05") and "rejected 400" in ended.out
    again = annals("subscriptions", "redeliver", id, "00000000000000000005.00", "--database", url)
    assert again.out == "00000000000000000005.00 is tried again\n"
    assert annals("subscriptions", "redeliver", id, "1.00", "--database", url).code == 1
    with closing(Store(url)) as store:
        created, (position, redelivered) = [each for each in store.events(0, 1000) if each[1].xid.endswith(id)]
    action = {"name": "redeliver", "sequence": "00000000000000000005.00", "position": position}
    assert redelivered.private["action"] == action and "action" not in created[1].private


def test_what_is_refused(annals: Annals, url: str, tmp_path: Path) -> None:
    # SUB-508: one line on stderr names the wrong member, and the exit code is not 0
    (tmp_path / "wrong.json").write_text(json.dumps({**BODY, "filters": [{"sql": "type LIKE"}]}))
    cases: list[tuple[tuple[str | Path, ...], str, int, str]] = [
        (("create", tmp_path / "wrong.json"), url, 1, '"/filters/0/sql"'),
        (("create", tmp_path / "none.json"), url, 2, "none.json"),
        (("list",), f"sqlite:///{tmp_path}/none.db", 3, "none.db"),
    ]
    for arguments, database, code, said in cases:
        ended = annals("subscriptions", *arguments, "--database", database)
        assert (ended.code, ended.err.count("\n"), said in ended.err) == (code, 1, True), ended


def test_another_master_key(annals: Annals, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # SUB-914: rotation wraps the data keys again; the secret values and the log stay the same
    assert annals("secrets", "rotate", "--database", url).code == 2
    monkeypatch.setenv("ANNALS_MASTER_KEY", KEYS[0])
    id = create_subscription(annals, url, tmp_path, sink="https://93.184.216.34/in?k=v")
    (tmp_path / "keys").write_text(f"{KEYS[1]}\n{KEYS[0]}\n")
    monkeypatch.delenv("ANNALS_MASTER_KEY")
    monkeypatch.setenv("ANNALS_MASTER_KEY_FILE", str(tmp_path / "keys"))
    with closing(Store(url)) as store:
        before = store.events(0, 1000)
    ended = annals("secrets", "rotate", "--database", url)
    assert (ended.code, ended.out) == (0, "1 secrets are under the newest master key\n"), ended.err
    with closing(Store(url)) as store, store.engine.begin() as connection:
        assert store.events(0, 1000) == before
        [(reference, owner, name)] = connection.exec_driver_sql("SELECT reference, owner, name FROM secret")
        assert owner == f"/subscriptions/{id}"
        found = Vault([bytes([2]) * 32]).reveal(connection, Secret(reference, owner, name))
    assert found == "k=v"
    (tmp_path / "keys").write_text(f"{KEYS[0]}\n")
    lost = annals("secrets", "rotate", "--database", url)
    assert lost.code == 3 and "an older key" in lost.err


def test_keys_are_not_printed(annals: Annals, monkeypatch: pytest.MonkeyPatch) -> None:
    # SUB-303: neither in the list of settings nor in the error about a wrong key
    monkeypatch.setenv("ANNALS_MASTER_KEY", KEYS[0])
    assert KEYS[0] not in annals("config").out
    monkeypatch.setenv("ANNALS_MASTER_KEY", "swordfish")
    ended = annals("config")
    assert ended.code == 2 and "swordfish" not in ended.err and "ANNALS_MASTER_KEY" in ended.err
