"""Exports to schema registries that assign their own ids, of a past state, and into another context (CSR-1008)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from annals.domain.confluent.subjects import Subject
from tests.api.cli.confluent_copies.test_copies import AVRO, OTHER, report, sqlite
from tests.support.confluent import serving_confluent
from tests.support.console import Annals
from tests.support.gateways import GatewayRequest, GatewayResponse, gateway
from tests.support.schema_sets import contents, done, register

USER = '{"type": "record", "name": "User", "fields": [{"name": "last", "type": "Order"}]}'


@pytest.fixture(autouse=True)
def local_addresses(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANNALS_SINKS_ALLOW", "127.0.0.1")


@pytest.fixture
def own(folder: Path) -> str:
    """The URL of a store: a subject with a soft-deleted version, and a subject that refers to its other version."""
    database = sqlite(folder, "own")
    with serving_confluent(database, folder / "own") as url, httpx.Client(base_url=url) as client:
        register(client, "once", {"schema": '"int"'})
        done(client, "DELETE", "/subjects/once")
        done(client, "DELETE", "/subjects/once?permanent=true")
        done(client, "PUT", "/config", {"compatibility": "NONE"})
        register(client, "orders", {"schema": OTHER})
        register(client, "orders", {"schema": AVRO})
        done(client, "DELETE", "/subjects/orders/versions/1")
        reference = {"name": "Order", "subject": "orders", "version": 2}
        register(client, "users", {"schema": USER, "references": [reference]})
    return database


def test_new_ids(annals: Annals, folder: Path, own: str) -> None:
    """A registry without mode IMPORT is refused, unless --new-ids is given. A second run finds all versions equal."""

    def without_modes(request: GatewayRequest) -> GatewayResponse | None:
        return GatewayResponse(405, None) if request.path.startswith("/mode") else None

    with serving_confluent(sqlite(folder, "other"), folder / "other") as other, httpx.Client(base_url=other) as client:
        register(client, "mine", {"schema": '"long"'})  # takes id 1, so that the ids of the copies differ
        with gateway(other, without_modes) as target:
            refused = annals("export", "--to-confluent", target.url, "--database", own)
            assert refused.code == 1 and "does not keep ids: it has no mode IMPORT. With --new-ids" in refused.err
            assert [subject.name for subject in contents(other) if subject.name] == ["mine"]
            options = ("--to-confluent", target.url, "--database", own, "--new-ids", "--report", "report.jsonl")
            copied = annals("export", *options)
            assert copied.code == 0, copied.err
            found = contents(other)
            again = annals("export", *options)
            assert again.code == 0, again.err
        assert {line["outcome"] for line in report(folder / "report.jsonl")[:-1]} == {"equal"}
        assert contents(other) == found
    orders = found[Subject(".", "orders")].versions
    assert [(one.number, one.is_deleted) for one in orders] == [(1, True), (2, False)]
    assert [one.id for one in (*orders, *found[Subject(".", "users")].versions)] == [2, 3, 4]


@pytest.mark.parametrize("place", ["POST /subjects/orders", "POST /subjects/orders/versions", "GET /contexts/:.:/"])
@pytest.mark.parametrize("options", ["", "--new-ids"])
def test_answers_of_something_else(annals: Annals, folder: Path, own: str, place: str, options: str) -> None:
    def strange(request: GatewayRequest) -> GatewayResponse | None:
        is_strange = f"{request.method} {request.path}".startswith(place)
        return GatewayResponse(200, [1, 2]) if is_strange else None

    with (
        serving_confluent(sqlite(folder, "other"), folder / "other") as other,
        gateway(other, strange) as target,
    ):
        ended = annals("export", "--to-confluent", target.url, "--database", own, *options.split())
    assert ended.code in (0, 1) and ended.err.count("\n") == (1 if ended.code else 0), ended.err


def test_the_past(annals: Annals, folder: Path, own: str) -> None:
    then = datetime.now(UTC).isoformat()
    with serving_confluent(own, folder / "own") as url, httpx.Client(base_url=url) as client:
        past = contents(url)
        register(client, "later", {"schema": '"string"'})
        done(client, "DELETE", "/subjects/users")
    with serving_confluent(sqlite(folder, "other"), folder / "other") as other:
        copied = annals("export", "--to-confluent", other, "--database", own, "--asof", then)
        assert copied.code == 0, copied.err
        assert contents(other) == past
        wrong = annals("export", "--to-confluent", other, "--database", own, "--asof", "yesterday")
        assert wrong.code != 0 and "yesterday" in wrong.err


def test_into_another_context(annals: Annals, folder: Path, own: str) -> None:
    """References stay inside the copied context. Ids stay the same, because they are unique per context only."""
    with serving_confluent(sqlite(folder, "other"), folder / "other") as other, httpx.Client(base_url=other) as client:
        register(client, "mine", {"schema": '"long"'})
        register(client, "mine2", {"schema": '"int"'})  # has the id of an exported schema
        selection = ("--context", ".", "--into", "moved", "--subject-prefix", "")
        copied = annals("export", "--to-confluent", other, "--database", own, *selection)
        assert copied.code == 0, copied.err
        found = contents(other)
    with serving_confluent(own, folder / "own") as url:
        source = contents(url)
    for name in ("orders", "users"):
        moved, versions = found[Subject(".moved", name)].versions, source[Subject(".", name)].versions
        assert [one.id for one in moved] == [one.id for one in versions]
    assert found[Subject(".moved", "users")].versions[0].references[0].subject == "orders"


def test_an_export_of_a_document_names_the_verb_that_keeps_ids(annals: Annals, folder: Path, own: str) -> None:
    # CSR-903: an exported document does not contain the ids of schemas
    with_schemas = annals("export", "--database", own, "--output", "copy.json")
    assert with_schemas.code == 0 and "`annals import --from-confluent`" in with_schemas.err
    assert with_schemas.err.startswith("annals: the document has no ids of schemas")
    (folder / "empty.json").write_text('{"schemagroups": {"g": {}}}')
    assert annals("import", "empty.json", "--database", sqlite(folder, "empty")).code == 0
    without = annals("export", "--database", sqlite(folder, "empty"))
    assert without.code == 0 and "no ids" not in without.err
