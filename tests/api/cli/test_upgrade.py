"""`annals upgrade`: upgrades an old store with its history; a store of a newer release is refused with one line."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from annals.commands.store.database.tables import SCHEMA
from tests.support.console import Annals
from tests.support.old_stores import CHAINS, EVENTS, OLD_SCHEMAS, write_old_store

#: Verbs that read or write the store.
VERBS = ("upgrade", "export", "log verify", "log history /", "rebuild", "secrets rotate", "publish --kafka localhost:9")
DATABASE = "sqlite:///annals.db"


@pytest.mark.parametrize("schema", OLD_SCHEMAS)
def test_an_old_store_is_upgraded(annals: Annals, store_url: str, schema: str) -> None:
    write_old_store(store_url, schema)
    upgraded = annals("upgrade", "--database", store_url)
    assert (upgraded.code, upgraded.err) == (0, "")
    lines = upgraded.out.splitlines()
    assert lines[0].startswith(f"schema {int(schema) + 1}: ")
    has_current_read_model = schema == OLD_SCHEMAS[-1] and store_url.startswith("sqlite")
    assert (f"read model: rebuilt from {EVENTS} events" in lines) is not has_current_read_model
    assert [line for line in lines if line.startswith(f"log: {EVENTS} events compressed from ")]
    assert lines[-1] == f"The store has schema {SCHEMA}."
    verified = annals("log", "verify", "--database", store_url)
    assert (verified.code, f"chain {CHAINS[schema]} " in verified.out) == (0, True), verified
    assert json.loads(annals("export", "--database", store_url).out)["dirs"]["d1"]["name"] == "renamed"
    assert annals("upgrade", "--database", store_url).out == f"The store has schema {SCHEMA}.\n"


def test_a_quick_upgrade_leaves_events_uncompressed(annals: Annals) -> None:
    write_old_store(DATABASE, "3")
    assert "compressed from" not in annals("upgrade", "--quick").out
    assert f"log: {EVENTS} events compressed from " in annals("upgrade").out


def test_a_start_upgrades_too(annals: Annals) -> None:
    write_old_store(DATABASE, "2")
    assert json.loads(annals("export").out)["dirs"]["d1"]["name"] == "renamed"
    assert annals("log", "verify").code == 0
    assert f"log: {EVENTS} events compressed from " in annals("upgrade").out


def test_an_old_log_is_not_read_without_its_columns(annals: Annals) -> None:
    write_old_store(DATABASE, "2")
    refused = annals("log", "verify")
    assert refused.code == 3
    assert "`annals upgrade`" in refused.err


def test_a_log_is_verified_without_a_read_model_of_this_program(annals: Annals) -> None:
    write_old_store(DATABASE, "3")
    verified = annals("log", "verify")
    assert (verified.code, verified.out.count("\n")) == (3, 1)
    assert f"position {EVENTS}: the read model is missing, or of another program" in verified.out
    assert "the log is intact" in verified.err
    assert (annals("rebuild").code, annals("log", "verify").code) == (0, 0)
    with closing(sqlite3.connect("annals.db", isolation_level=None)) as connection:
        connection.execute(
            "UPDATE interaction SET chain = zeroblob(32) WHERE last = (SELECT min(last) FROM interaction)"
        )
        connection.execute("DROP TABLE entity")
    verified = annals("log", "verify")
    assert "chain" in verified.out and "the read model is missing" in verified.out
    assert (verified.code, "restore the store from a backup" in verified.err) == (3, True)


@pytest.mark.parametrize("verb", [*VERBS])
def test_a_store_of_a_newer_program_is_refused(annals: Annals, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANNALS_MASTER_KEY", "A" * 43 + "=")
    write_old_store(DATABASE, "3")
    with closing(sqlite3.connect("annals.db", isolation_level=None)) as connection:
        connection.execute("UPDATE store SET value = '99' WHERE key = 'schema'")
    refused = annals(*verb.split())
    assert (refused.code, refused.err.count("\n")) == (3, 1), refused
    assert "a newer program wrote the store, with schema 99" in refused.err


def test_a_damaged_log_is_one_line_and_code_3(annals: Annals) -> None:
    """The read model of a damaged log cannot be rebuilt; the error names the verb that finds the damage."""
    write_old_store(DATABASE, "2")
    with closing(sqlite3.connect("annals.db", isolation_level=None)) as connection:
        connection.execute("UPDATE interaction SET state = zeroblob(32)")
    refused = annals("upgrade")
    assert (refused.code, refused.err.count("\n")) == (3, 1), refused
    assert "annals log verify" in refused.err


def test_there_has_to_be_a_store(annals: Annals) -> None:
    assert annals("upgrade").code == 3
