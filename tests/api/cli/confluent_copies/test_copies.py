"""Copies from and to schema registries keep ids, numbers, guids, texts, references, deletions and settings."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from kafka import KafkaProducer

from annals.api.cli.confluent_copies.record_sources import topic_source
from annals.commands.store.log import Store
from annals.domain.confluent.subjects import Subject
from annals.projections.kafka.cluster import KafkaCluster
from tests.support.brokers.certificates import issue_certificate
from tests.support.brokers.kafka import kafka
from tests.support.confluent import serving_confluent
from tests.support.console import Annals
from tests.support.forks import Fork
from tests.support.schema_sets import contents, done, fill, register
from tests.support.serving import environment, serving

AVRO = '{"type": "record", "name": "Order", "fields": []}'
OTHER = '{"type": "record", "name": "Other", "fields": []}'


@pytest.fixture(autouse=True)
def local_addresses(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANNALS_SINKS_ALLOW", "127.0.0.1")


def sqlite(folder: Path, name: str) -> str:
    return f"sqlite:///{folder / name}.db"


def last_position(database: str) -> int:
    with closing(Store(database)) as store:
        return store.log_end().position


def report(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def there_and_back(annals: Annals, folder: Path, store_url: str, count: int) -> None:
    """Fills a registry, imports it into a second one, and exports that one to a third one."""
    with serving_confluent(sqlite(folder, "first"), folder / "first") as first:
        fill(first, count)
        source = contents(first)
        copied = annals("import", "--from-confluent", first, "--database", store_url, "--report", "report.jsonl")
        assert copied.code == 0, copied.err
        versions = sum(len(copy.versions) for copy in source.values())
        lines = report(folder / "report.jsonl")
        assert len([line for line in lines if "version" in line]) == versions
        assert {line["outcome"] for line in lines[:-1]} == {"created"}
        assert lines[-1] == {"counts": {"created": len(lines) - 1}}
        position = last_position(store_url)
        again = annals("import", "--from-confluent", first, "--database", store_url)
        assert (again.code, again.out) == (0, f"{len(lines) - 1} equal\n"), again.err
        assert last_position(store_url) == position
    with serving_confluent(store_url, folder / "second") as second:
        assert contents(second) == source
    with serving_confluent(sqlite(folder, "third"), folder / "third") as third:
        exported = annals("export", "--to-confluent", third, "--database", store_url, "--report", "export.jsonl")
        assert exported.code == 0, (exported.err, (folder / "export.jsonl").read_text())
        assert contents(third) == source
        again = annals("export", "--to-confluent", third, "--database", store_url, "--report", "export.jsonl")
        assert again.code == 0, again.err
        assert {line["outcome"] for line in report(folder / "export.jsonl")[:-1]} == {"equal"}


def test_a_registry_is_copied_there_and_back(annals: Annals, folder: Path, store_url: str) -> None:
    # CSR-1001, CSR-1003, CSR-1005, CSR-1006, CSR-1008
    there_and_back(annals, folder, store_url, 60)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_large_registry_is_copied_there_and_back(annals: Annals, folder: Path, postgres_url: str) -> None:
    there_and_back(annals, folder, postgres_url, 5000)


def test_a_copy_goes_through_a_server(annals: Annals, folder: Path) -> None:
    # CSR-1011: --server
    with (
        serving_confluent(sqlite(folder, "first"), folder / "first") as first,
        serving_confluent(sqlite(folder, "second"), folder / "second") as second,
    ):
        fill(first, 12)
        root = (folder / "second" / "serve.log").read_text().split("Annals serves ")[1].split()[0]
        copied = annals("import", "--from-confluent", first, "--server", root)
        assert copied.code == 0, copied.err
        assert contents(second) == contents(first)


@pytest.mark.parametrize("given", ["option", "setting"])
def test_a_server_with_a_certificate_of_an_own_authority(
    annals: Annals, folder: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    # SUB-906: --ca and ANNALS_SINKS_CA are for all servers that a command asks
    files = issue_certificate(folder / "tls", "127.0.0.1")
    tls = {"ANNALS_TLS_CERT": str(files.certificate), "ANNALS_TLS_KEY": str(files.key)}
    (folder / "second").mkdir()
    with (
        serving_confluent(sqlite(folder, "first"), folder / "first") as first,
        serving(sqlite(folder, "second"), folder / "second", **tls) as second,
    ):
        fill(first, 1)
        copy = ("import", "--from-confluent", first, "--server", second.url)
        compare = ("log", "hash", "/schemagroups", "--against", second.url, "--database", sqlite(folder, "first"))
        untrusted = [annals(*words) for words in (copy, compare)]
        assert [(found.code, "CERTIFICATE_VERIFY_FAILED" in found.err) for found in untrusted] == [(3, True)] * 2
        if given == "option":
            assert annals(*copy, "--ca", files.ca).code == 0
            return
        monkeypatch.setenv("ANNALS_SINKS_CA", str(files.ca))
        assert annals(*copy).code == 0
        assert annals(*compare).code == 1  # the copy has other times


@pytest.mark.timeout(300)
def test_a_killed_copy_is_finished_by_the_next(annals: Annals, folder: Path) -> None:
    # CSR-1005
    database = sqlite(folder, "second")
    with serving_confluent(sqlite(folder, "first"), folder / "first") as first:
        fill(first, 40)
        source = contents(first)
        for lines in (3, 20):  # the number of new events in the log when the import is killed
            kill_import(folder, first, database, lines)
        copied = annals("import", "--from-confluent", first, "--database", database)
        assert copied.code == 0, copied.err
        position = last_position(database)
        assert annals("import", "--from-confluent", first, "--database", database).code == 0
        assert last_position(database) == position
    with serving_confluent(database, folder / "second") as second:
        assert contents(second) == source


def kill_import(folder: Path, url: str, database: str, position: int) -> None:
    """Starts an import, and kills it once the log has `position` more events."""
    arguments = ["import", "--from-confluent", url, "--database", database]
    settings = environment(ANNALS_SINKS_ALLOW="127.0.0.1")
    process = Fork(arguments, folder, settings, folder / "out", folder / "err")
    start = last_position(database) if Path(folder / "second.db").exists() else 0
    while process.poll() is None:
        if (folder / "second.db").exists() and _position_or_none(database) >= start + position:
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait(30)


def _position_or_none(database: str) -> int:
    try:
        return last_position(database)
    except Exception:  # the store is being created
        return 0


def test_conflicts_are_left_out_and_the_rest_goes_on(annals: Annals, folder: Path) -> None:
    # CSR-1004
    database = sqlite(folder, "second")
    with serving_confluent(sqlite(folder, "first"), folder / "first") as first, httpx.Client(base_url=first) as client:
        register(client, "taken", {"schema": AVRO})
        register(client, "numbered", {"schema": OTHER})
        register(client, "free", {"schema": '"string"'})
        done(client, "PUT", "/config", {"compatibility": "FULL"})
        with serving_confluent(database, folder / "second") as second, httpx.Client(base_url=second) as other:
            register(other, "mine", {"schema": '"int"'})  # id 1, which is AVRO's at the source
            register(other, "numbered", {"schema": '"long"'})
            done(other, "PUT", "/config", {"compatibility": "NONE"})
        before = last_position(database)
        options = ["--from-confluent", first, "--database", database, "--report", "report.jsonl"]
        dry = annals("import", *options, "--dry-run")
        assert (dry.code, last_position(database)) == (1, before)
        copied = annals("import", *options)
        assert copied.code == 1 and "report.jsonl says which one and why" in copied.err
    outcomes = {line.get("subject"): line for line in report(folder / "report.jsonl") if "version" in line}
    assert {name: line["outcome"] for name, line in outcomes.items()} == {
        "taken": "conflict",
        "numbered": "conflict",
        "free": "created",
    }
    assert outcomes["taken"]["reason"] == "Version 1 has id 1, which is the id of another schema in this context"
    settings = [line for line in report(folder / "report.jsonl") if line.get("setting") == "config"]
    assert {(line["context"], line["outcome"]) for line in settings} >= {(".", "conflict")}


def test_a_context_is_moved_into_another(annals: Annals, folder: Path) -> None:
    # CSR-1001, CSR-1004: --context, --subject-prefix, --into
    database = sqlite(folder, "second")
    with serving_confluent(sqlite(folder, "first"), folder / "first") as first, httpx.Client(base_url=first) as client:
        register(client, ":.a:order", {"schema": AVRO})
        reference = {"name": "Order", "subject": ":.a:order", "version": 1}
        user = '{"type": "record", "name": "User", "fields": [{"name": "last", "type": "Order"}]}'
        register(client, ":.a:order-user", {"schema": user, "references": [reference]})
        register(client, ":.a:other", {"schema": OTHER})
        register(client, "order", {"schema": OTHER})
        selection = ("--context", "a", "--subject-prefix", "order", "--into", "b")
        copied = annals("import", "--from-confluent", first, "--database", database, *selection)
        assert copied.code == 0, copied.err
    with serving_confluent(database, folder / "second") as second:
        found = {subject: copy.versions for subject, copy in contents(second).items() if subject.name}
    assert {*found} == {Subject(".b", "order"), Subject(".b", "order-user")}
    assert found[Subject(".b", "order-user")][0].references[0].subject == "order"


def test_versions_that_refer_to_their_own_subject(annals: Annals, folder: Path) -> None:
    # CSR-1003: a subject whose versions are copied in two parts
    database = sqlite(folder, "second")
    with serving_confluent(sqlite(folder, "first"), folder / "first") as first, httpx.Client(base_url=first) as client:
        register(client, "s", {"schema": AVRO})
        done(client, "PUT", "/config", {"compatibility": "NONE"})
        user = '{"type": "record", "name": "User", "fields": [{"name": "last", "type": "Order"}]}'
        reference = {"name": "Order", "subject": "s", "version": 1}
        register(client, "s", {"schema": user, "references": [reference]})
        source = contents(first)
        copied = annals("import", "--from-confluent", first, "--database", database)
        assert copied.code == 0, copied.err
    with serving_confluent(database, folder / "second") as second:
        assert contents(second) == source


def test_the_default_version_is_the_latest_one(annals: Annals, folder: Path) -> None:
    # CSR-1003: one interaction creates all Versions, and the next one deletes some
    database = sqlite(folder, "second")
    with serving_confluent(sqlite(folder, "first"), folder / "first") as first, httpx.Client(base_url=first) as client:
        done(client, "PUT", "/config", {"compatibility": "NONE"})
        for number in range(1, 12):
            register(client, "s", {"schema": f'{{"type": "record", "name": "R{number}", "fields": []}}'})
        for number in (1, 5, 10):
            done(client, "DELETE", f"/subjects/s/versions/{number}")
        assert annals("import", "--from-confluent", first, "--database", database).code == 0
    with (
        serving_confluent(database, folder / "second") as second,
        httpx.Client(base_url=second.rpartition(":")[0]) as client,
    ):
        root = (folder / "second" / "serve.log").read_text().split("Annals serves ")[1].split()[0]
        meta = done(client, "GET", f"{root}/schemagroups/default/schemas/s/meta")
        versions = done(client, "GET", f"{root}/schemagroups/default/schemas/s/versions")
    assert meta["defaultversionid"] == "11"
    assert {*versions} == {"2", "3", "4", "6", "7", "8", "9", "11"}


RECORDS = [
    ({"keytype": "NOOP", "magic": 0}, None),
    ({"keytype": "CONFIG", "magic": 0}, {"compatibilityLevel": "FULL"}),
    (
        {"keytype": "SCHEMA", "subject": "orders", "version": 3, "magic": 1},
        {"subject": "orders", "version": 3, "id": 17, "schema": AVRO, "deleted": False},
    ),
    (
        {"keytype": "SCHEMA", "subject": "orders", "version": 2, "magic": 1},
        {"subject": "orders", "version": 2, "id": 11, "schema": OTHER, "deleted": True},
    ),
]


def check_records(annals: Annals, folder: Path, *source: str | Path) -> None:
    database = sqlite(folder, "second")
    copied = annals("import", *source, "--database", database)
    assert (copied.code, copied.out) == (0, "3 created\n"), copied.err
    position = last_position(database)
    assert annals("import", *source, "--database", database).out == "3 equal\n"
    assert last_position(database) == position
    with serving_confluent(database, folder / "second") as second:
        copy = contents(second)[Subject(".", "orders")]
    assert [(one.number, one.id, one.text, one.is_deleted) for one in copy.versions] == [
        (2, 11, OTHER.replace(" ", ""), True),
        (3, 17, AVRO.replace(" ", ""), False),
    ]


def test_a_dump_of_a_topic(annals: Annals, folder: Path) -> None:
    # CSR-1010
    lines = [json.dumps({"key": key, "value": value}) for key, value in RECORDS]
    (folder / "schemas.jsonl").write_text("\n".join(lines))
    check_records(annals, folder, "--from-schemas-dump", folder / "schemas.jsonl")
    (folder / "other.jsonl").write_text("{}\t{}\n")
    refused = annals("import", "--from-schemas-dump", folder / "other.jsonl", "--database", sqlite(folder, "second"))
    assert refused.code == 1 and "other.jsonl: line 1: its key has no keytype" in refused.err


def test_a_name_that_is_no_unicode_is_reported(annals: Annals, folder: Path) -> None:
    # CSR-1004, CSR-1006: half of a surrogate pair, which UTF-8 cannot encode; the rest goes on
    names = ("half \ud800", "whole \U0001f600")
    keys = [{"keytype": "SCHEMA", "subject": name, "version": 1, "magic": 1} for name in names]
    values = [{"subject": name, "version": 1, "id": 1, "schema": AVRO} for name in names]
    lines = [json.dumps({"key": key, "value": value}) for key, value in zip(keys, values, strict=True)]
    (folder / "dump.jsonl").write_text("\n".join(lines))
    options = ("--from-schemas-dump", "dump.jsonl", "--database", sqlite(folder, "copy"), "--report", "report.jsonl")
    copied = annals("import", *options)
    assert (copied.code, copied.out) == (1, "1 created, 1 failed\n"), copied.err
    found = {line.get("subject"): line.get("outcome") for line in report(folder / "report.jsonl")[:-1]}
    assert found == dict(zip(names, ("failed", "created"), strict=True))


def test_files_and_clusters_with_the_same_names_are_different_sources(annals: Annals, folder: Path) -> None:
    # CSR-1011: what was copied from one of them has not been deleted by another that does not have it
    for place, subject in (("one", "a"), ("two", "b")):
        (folder / place).mkdir()
        value = {"subject": subject, "version": 1, "id": 1, "schema": AVRO}
        key = {"keytype": "SCHEMA", "subject": subject, "version": 1, "magic": 1}
        (folder / place / "dump.jsonl").write_text(json.dumps({"key": key, "value": value}))
        options = ("--from-schemas-dump", folder / place / "dump.jsonl", "--database", sqlite(folder, "copy"))
        assert (copied := annals("import", *options)).out == "1 created\n", copied.err
    again = ("--from-schemas-dump", folder / "one" / "dump.jsonl", "--database", sqlite(folder, "copy"))
    assert annals("import", *again).out == "1 equal\n"


def test_a_topic(annals: Annals, folder: Path) -> None:
    # CSR-1010
    with kafka() as broker, closing(KafkaProducer(bootstrap_servers=broker.own())) as producer:
        KafkaCluster(f"kafka://{broker.own()}").create_topics(["_schemas"], 1, {"cleanup.policy": "compact"})
        for key, value in RECORDS:
            content = None if value is None else json.dumps(value).encode()
            producer.send("_schemas", content, json.dumps(key).encode())
        producer.flush()
        check_records(annals, folder, "--from-schemas-topic", "_schemas", "--kafka", broker.own())
        cluster = KafkaCluster(f"kafka://{broker.own()}").id()
        assert cluster and topic_source("_schemas", broker.own())().name == f"topic _schemas of {cluster}"


@pytest.mark.timeout(300)
def test_following_a_registry(annals: Annals, folder: Path) -> None:
    # CSR-1011: --follow deletes copied subjects without local changes; other subjects stay
    database, options = sqlite(folder, "second"), ["--report", "report.jsonl"]
    with (
        serving_confluent(sqlite(folder, "first"), folder / "first") as first,
        httpx.Client(base_url=first) as client,
    ):
        for name in ("a", "b", "c"):
            register(client, name, {"schema": f'{{"type": "record", "name": "{name}", "fields": []}}'})
        assert annals("import", "--from-confluent", first, "--database", database).code == 0
        register(client, "once", {"schema": '"int"'})  # takes the id that the other registry assigns to `mine` below
        done(client, "DELETE", "/subjects/once")
        done(client, "DELETE", "/subjects/once?permanent=true")
        done(client, "DELETE", "/subjects/a")
        repeated = annals("import", "--from-confluent", first, "--database", database, *options)
        assert repeated.code == 0, repeated.err
        lines = [line for line in report(folder / "report.jsonl") if line.get("subject") == "a" and "version" in line]
        assert [(line["outcome"], line["reason"]) for line in lines] == [("kept", "the source has deleted it")]
        with serving_confluent(database, folder / "second") as second, httpx.Client(base_url=second) as other:
            register(other, "mine", {"schema": '"int"'})
            root = (folder / "second" / "serve.log").read_text().split("Annals serves ")[1].split()[0]
            arguments = ["import", "--from-confluent", first, "--server", root, "--follow", "--interval", "0.1"]
            settings = environment(ANNALS_SINKS_ALLOW="127.0.0.1")
            process = Fork(arguments, folder, settings, folder / "out", folder / "err")
            try:
                wait_for(lambda: other.get("/subjects").json() == ["b", "c", "mine"])
                register(client, "d", {"schema": OTHER})
                done(client, "DELETE", "/subjects/b")
                done(client, "DELETE", "/subjects/b?permanent=true")
                wait_for(lambda: other.get("/subjects").json() == ["c", "d", "mine"])
            finally:
                process.send_signal(signal.SIGTERM)
                assert process.wait(60) == 0, (folder / "err").read_text()


@pytest.mark.parametrize("selected", [[], ["--context", ".lab"]])
def test_a_context_that_is_gone(annals: Annals, folder: Path, selected: list[str]) -> None:
    # CSR-1011: the report names its subjects, as those that are gone in other contexts
    database = sqlite(folder, "second")
    with (
        serving_confluent(sqlite(folder, "first"), folder / "first") as first,
        httpx.Client(base_url=first) as client,
    ):
        for name in ("a", ":.lab:p"):
            register(client, name, {"schema": '"int"'})
        assert annals("import", "--from-confluent", first, "--database", database).code == 0
        root = (folder / "first" / "serve.log").read_text().split("Annals serves ")[1].split()[0]
        assert httpx.delete(f"{root}/schemagroups/lab").is_success
        options = [*selected, "--report", "report.jsonl"]
        assert annals("import", "--from-confluent", first, "--database", database, *options).code == 0
    lines = [line for line in report(folder / "report.jsonl") if line.get("context") == ".lab" and "version" in line]
    assert [(line["outcome"], line["reason"]) for line in lines] == [("kept", "the source has deleted it")]


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


#: Options of copies; those of both verbs come first.
COPY_OPTIONS = [
    "--dry-run",
    "--report out.jsonl",
    "--context c",
    "--subject-prefix x",
    "--into c",
    "--user u",
    "--secret-file data.json",
    "--ca data.json",
    "--follow",
    "--server http://127.0.0.1:1",
]

WRONG_USAGE = [
    (("import", "--from-confluent", "ftp://h"), "ftp://h is no URL of a schema registry"),
    (("import", "--from-confluent", "http://u:p@127.0.0.1"), "passwords do not belong into URLs"),
    (("import", "--from-confluent", "http://10.0.0.1:8081"), "10.0.0.1:8081: private, local and reserved addresses"),
    (("import", "--from-confluent", "http://127.0.0.1:1", "--user", "u"), "the password is missing"),
    (("import", "--from-confluent", "http://127.0.0.1:1", "--context", "a:b"), "--context: 'a:b' is no context"),
    (("import",), "name documents"),
    (("export", "--to-confluent", "http://127.0.0.1:8081", "--stated"), "--output and --stated belong to"),
    *(
        (("import", "data.json", *options.split()), f"{options.split()[0]}: only for copies")
        for options in COPY_OPTIONS
    ),
    *((("import", *options.split()), f"{options.split()[0]}: only for copies") for options in COPY_OPTIONS),
    *((("export", *options.split()), f"{options.split()[0]}: only for copies") for options in COPY_OPTIONS[:8]),
    (("import", "data.json", "--dry-run", "--follow"), "--dry-run, --follow: only for copies of schemas; name their"),
    (("import", "data.json", "--kafka", "h:1"), "--kafka: only for copies"),
    (("import", "data.json", "--interval", "1"), "--interval: only for copies"),
    (("import", "--from-confluent", "http://127.0.0.1:1", "--interval", "1"), "--interval: only with --follow"),
    (("import", "--from-schemas-dump", "data.json", "--interval", "5"), "--interval: only with --follow"),
    (("import", "--from-schemas-dump", "data.json", "--from-confluent", "http://h"), "copies have one source"),
    (("import", "data.json", "--from-confluent", "http://h"), "documents, --as and --dialect belong to another"),
    (("export", "--asof", "3", "--subject-prefix", "x"), "--subject-prefix, --asof: only for copies"),
    (("export", "--new-ids"), "--new-ids: only for copies of schemas; name their target with --to-confluent."),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG_USAGE)
def test_wrong_usage(annals: Annals, folder: Path, arguments: tuple[str, ...], message: str) -> None:
    # CSR-1009
    (folder / "data.json").write_text("{}")
    ended = annals(*arguments)
    assert ended.code == 2 and message in ended.err, ended.err
    assert [file.name for file in folder.iterdir()] == ["data.json"]


#: Arguments, and the files of the folder that they would overwrite.
OVERWRITING = [
    ("import --from-schemas-dump dump.jsonl --report dump.jsonl", "an input"),
    ("import --from-schemas-dump dump.jsonl --report link", "an input"),
    ("import --from-confluent http://127.0.0.1:1 --secret-file dump.jsonl --report ./dump.jsonl", "an input"),
    ("import --from-schemas-dump dump.jsonl --report s.db --database sqlite:///s.db", "the store"),
    ("import --from-schemas-dump dump.jsonl --report new.db --database sqlite:///new.db", "the store"),
    ("import --from-schemas-dump dump.jsonl --report s.db-wal --database sqlite:///s.db", "the store"),
    ("export --database sqlite:///s.db -o s.db", "the store"),
    ("export --database sqlite:///s.db -o s.db-shm", "the store"),
    ("export --to-confluent http://127.0.0.1:1 --database sqlite:///s.db --report s.db", "the store"),
]


@pytest.mark.parametrize(("words", "contents"), OVERWRITING)
def test_no_file_that_a_copy_reads_is_overwritten(annals: Annals, folder: Path, words: str, contents: str) -> None:
    (folder / "dump.jsonl").write_text('{"key": {"keytype": "NOOP", "magic": 0}, "value": null}\n')
    (folder / "link").symlink_to("dump.jsonl")
    assert annals("import", "--from-schemas-dump", "dump.jsonl", "--database", "sqlite:///s.db").code == 0
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    ended = annals(*words.split())
    assert (ended.code, f" is {contents}, which the output would replace" in ended.err) == (2, True), ended.err
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
