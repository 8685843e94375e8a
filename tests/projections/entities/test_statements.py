"""The number of statements of a write transaction, which does not depend on the number of its commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from annals.commands.command_bus import handle
from annals.commands.pending_command import PendingCommand
from annals.commands.store.database import sql
from annals.commands.store.log import Store
from annals.commands.store.write_transaction import Recorded
from annals.domain.confluent.commands import RegisterSchema, SchemaRequest
from annals.domain.confluent.import_commands import ImportedVersion, ImportSubject
from annals.domain.confluent.subjects import ContextIds, Subject
from annals.domain.decisions.checks.document_checks import ChecksRequired
from annals.domain.decisions.commands import WriteMethod, WriteTree
from annals.domain.model.builtin import default_source
from annals.projections.database.drivers import SqliteDatabase
from annals.projections.entities.apply import EntityProjection
from annals.projections.entities.schema_versions import open_schemas
from tests.support.checked_batches import run_checks, with_check_results
from tests.support.registries.in_process import create

#: Three statements read, and the others write: on SQLite one for each table, on PostgreSQL one for all.
MOST = {"sqlite": 9, "postgresql": 4}
#: Further statements for the documents and the schemas, on SQLite. The first batch reads the highest id as well.
MOST_OF_SCHEMAS = 2
_DEFAULT = "/schemagroups/default"


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    create(store_url)
    store = Store(store_url)
    yield store
    store.close()


@pytest.fixture
def statements(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """See `noted_statements`."""
    return noted_statements(store, monkeypatch)


def noted_statements(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collects the statements that run from now on, without those that begin and end transactions."""
    seen: list[str] = []

    def count(owner: Any, *names: str) -> None:
        for name in names:
            monkeypatch.setattr(owner, name, _noting(getattr(owner, name), seen))

    if store.engine.dialect.name == "sqlite":
        count(sql, "run", "insert")
        count(SqliteDatabase, "run", "one", "all", "stream", "insert", "upsert", "delete")
    else:
        count(psycopg.Cursor, "execute", "executemany", "copy")
    return seen


def _noting(function: Callable[..., Any], seen: list[str]) -> Callable[..., Any]:
    def noted(*arguments: Any, **options: Any) -> Any:
        text = next((str(value) for value in arguments if isinstance(value, str)), function.__name__)
        if not text.startswith("BEGIN"):
            seen.append(text)
        return function(*arguments, **options)

    return noted


def _put(file: str, **attributes: Any) -> PendingCommand:
    return PendingCommand(WriteTree(f"/dirs/d1/files/{file}", attributes, WriteMethod.PUT))


@pytest.mark.parametrize("commands", [1, 2, 20])
def test_commands_share_statements(store: Store, statements: list[str], commands: int) -> None:
    entities = EntityProjection()
    handle([_put("before")], store, [entities])
    for round in ("made", "changed", "changed again"):
        batch = [_put(f"f{number}", name=round) for number in range(commands)]
        del statements[:]
        outcomes = handle(batch, store, [entities])
        assert all(isinstance(outcome, Recorded) for outcome in outcomes), outcomes
        assert len(statements) <= MOST[store.engine.dialect.name], "\n".join(map(str, statements))


@pytest.mark.parametrize("commands", [1, 2, 20])
def test_schemas_share_statements(store_url: str, monkeypatch: pytest.MonkeyPatch, commands: int) -> None:
    """CSR-408: commands whose documents are checked look up the ids of all contents at once."""
    create(store_url, default_source())
    with closing(Store(store_url, open_schemas=open_schemas)) as store:
        seen = noted_statements(store, monkeypatch)
        for round in (1, 2):
            batch = [_schema(f"s{number}", round, number % 3) for number in range(commands)]
            required = [outcome for outcome in handle(batch, store, []) if isinstance(outcome, ChecksRequired)]
            checked = [
                replace(pending, check_results=run_checks(each)) for pending, each in zip(batch, required, strict=True)
            ]
            del seen[:]
            outcomes = handle(checked, store, [EntityProjection()])
            assert all(isinstance(outcome, Recorded) for outcome in outcomes), outcomes
            assert len(seen) <= MOST[store.engine.dialect.name] + MOST_OF_SCHEMAS + (round == 1), "\n".join(
                map(str, seen)
            )
        ids = {event.private["confluent"]["id"] for _, event in store.events(0, 1000) if "/versions/" in event.xid}
    assert ids == set(range(1, 2 * min(3, commands) + 1))


@pytest.mark.parametrize("imports", [False, True])
def test_new_subjects_share_statements(store_url: str, monkeypatch: pytest.MonkeyPatch, imports: bool) -> None:
    """CSR-516, CSR-1003: all look-ups of a batch are read at once, and all its changes are written at once.

    imports: whether the commands contain ids.
    """
    create(store_url, default_source())
    with closing(Store(store_url, open_schemas=open_schemas)) as store:
        seen = noted_statements(store, monkeypatch)
        counts: list[int] = []
        for first, subjects in ((1, 1), (2, 2), (4, 20)):  # the first command of a process reads more
            numbers = range(first, first + subjects)
            batch = [_imported(number) if imports else _registration(number) for number in numbers]
            checked = with_check_results(store, batch)
            del seen[:]
            outcomes = handle(checked, store, [EntityProjection()])
            assert all(isinstance(outcome, Recorded) for outcome in outcomes), outcomes
            counts.append(len(seen))
    assert counts[1] == counts[2], "\n".join(seen)


def _registration(number: int) -> PendingCommand:
    return PendingCommand(RegisterSchema(_DEFAULT, Subject(".", f"s{number}"), _fixed(number), ContextIds()))


def _imported(number: int) -> PendingCommand:
    version = ImportedVersion(1, 100 + number, _fixed(number))
    return PendingCommand(ImportSubject(_DEFAULT, Subject(".", f"s{number}"), ContextIds(), "elsewhere", (version,)))


def _fixed(number: int) -> SchemaRequest:
    return SchemaRequest(f'{{"type": "fixed", "name": "f{number}", "size": 4}}', "AVRO")


def _schema(id: str, round: int, number: int) -> PendingCommand:
    attributes = {"format": "Avro/1.11.0", "contenttype": None}
    text = f'{{"type": "fixed", "name": "n{round}", "size": {number + 1}}}'.encode()
    path = f"/schemagroups/g/schemas/{id}x{round}"
    return PendingCommand(WriteTree(path, attributes, WriteMethod.PUT, document=text))


def test_refused_commands_take_no_statements(store: Store, statements: list[str]) -> None:
    """ENT-4: events that a refused command appended are never written."""
    handle([_put("f1")], store, [])
    del statements[:]

    def fail(*_: object) -> None:
        raise ValueError

    refused = PendingCommand(WriteTree("/dirs/d1/files/f2", {}, WriteMethod.PUT), build_answer=fail)
    outcomes = handle([_put("f3"), refused, _put("f4")], store, [])
    assert [isinstance(outcome, Recorded) for outcome in outcomes] == [True, False, True]
    assert not any("SAVEPOINT" in statement for statement in statements)
    assert [event.xid for _, event in store.events(0, 100) if event.xid.startswith("/dirs/d1/files/f")][-4:] == [
        "/dirs/d1/files/f3",
        "/dirs/d1/files/f3/versions/1",
        "/dirs/d1/files/f4",
        "/dirs/d1/files/f4/versions/1",
    ]
