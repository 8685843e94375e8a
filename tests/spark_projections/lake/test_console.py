"""`annals lake` on the command line: a served registry, other sources, kills, and what it refuses."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession
from sqlalchemy import make_url

from annals.api.cli import spark_lake
from annals.api.cli.outcome import ExitCode, InvalidInput
from annals.api.cli.spark_lake import LakePlace, append_lake
from annals.api.cli.spark_session import LogLocation
from annals.projections.segments.folder import open_folder
from annals.projections.segments.manifest import SegmentRange
from annals.projections.segments.write import append_segments
from annals.spark_projections.lake import Lake, LakeBusy, append
from annals.spark_projections.lake.formats import FormatName
from annals.spark_projections.lake.formats.contract import NoTables
from annals.spark_projections.lake.optimize import optimize
from annals.spark_projections.lake.source import LogSource, from_postgres, from_segments
from annals.spark_projections.lake.verify import verify
from annals.spark_projections.sources.remote_log import RemoteLog
from tests.spark_projections.conftest import require_connector
from tests.spark_projections.lake.conftest import NewLake
from tests.spark_projections.lake.lakes import FORMATS, ExampleLog, each_format, plain
from tests.spark_projections.served_registry import ServedLog, served_log, write_changes
from tests.spark_projections.test_session_setup import program
from tests.support.console import Annals, annals, folder, logs
from tests.support.faulty_proxy import Answer, faulty_proxy
from tests.support.polling import until
from tests.support.receivers import Receiver, serve_receiver
from tests.support.serving import environment, serving
from tests.support.spark_archive import options as java_options

__all__ = ["annals", "folder", "logs"]

pytestmark = [pytest.mark.uses("Spark"), pytest.mark.timeout(2400)]

_CONF: Final = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1"}
_KILLS: Final = 20
_KILLS_OF_OPTIMIZE: Final = 8
_TOKEN: Final = "swordfish"
#: A Java that says which one it is, and is killed when it starts something.
_KILLED_JAVA: Final = """#!/bin/sh
case "$*" in *-version*) ;; *) kill -9 $$;; esac
printf '    java.home = {home}\\n    java.specification.version = 17\\n' >&2
"""


@pytest.fixture
def growing(sqlite_url: str, tmp_path: Path) -> Iterator[ServedLog]:
    """A registry for one test only."""
    with served_log(sqlite_url, tmp_path) as found:
        yield found


@pytest.fixture
def observed(sqlite_url: str, tmp_path: Path) -> Iterator[ServedLog]:
    """A registry with callers, which has delivered everything to a subscription, and has a link that fails."""
    settings = {
        "ANNALS_SINKS_ALLOW": "127.0.0.1",
        "ANNALS_SINKS_PLAINTEXT": "true",
        "ANNALS_SINKS_VALIDATION": "off",
    }
    with (
        serve_receiver(Receiver()) as receiver,
        served_log(sqlite_url, tmp_path, token=_TOKEN, **settings) as found,
    ):
        found.write("POST", "/subscriptions", {"sink": receiver.url, "protocol": "HTTP"})
        link = {"url": "http://127.0.0.1:9/", "dialect": "xregistry", "scope": {"groups": ["/schemagroups/berlin"]}}
        found.write("PUT", "/-/links/berlin", link)
        write_changes(found, "delivered")
        until(lambda: _lag(found) == 0 and _state(found) == "failing", 60)
        yield found


def test_a_registry_becomes_a_lake(
    spark: SparkSession, annals: Annals, observed: ServedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the log by HTTP, its documents one by one, and the subscriptions and links that the caller may see
    where = ("--to", "lake", "--format", "parquet")
    monkeypatch.setenv("ANNALS_TOKEN", _TOKEN)
    end = observed.rows()[-1].position
    done = annals("lake", "append", "--from", observed.url, *where)
    assert (done.code, done.out) == (0, f"position {end}, {end} new events\n"), done.err
    head = observed.rows()[-1]
    done = annals("lake", "verify", *where, "--head", f"{end}:{head.chain.hex()}")
    assert done.code == 0, done.err
    assert done.out.count("equal to the log") == 8
    assert done.out.endswith(f"position {end}, chain {head.chain.hex()}, state {head.statehash.hex()}\n")
    lake = Lake(spark, "parquet", str(Path("lake").absolute()))
    assert lake.table("documents").read().count() > 10
    assert lake.table("schema_fields").read().count() > 10
    delivered = lake.table("deliveries").read().select("head", "protocol", "state", "position", "lag", "deadletters")
    assert [tuple(row) for row in delivered.collect()] == [(end, "HTTP", "active", end, 0, 0)]
    copied = lake.table("replication").read().select("head", "link", "state", "position")
    assert [tuple(row) for row in copied.collect()] == [(end, "berlin", "failing", 0)]


@pytest.mark.long
def test_a_lake_grows_and_is_optimized(
    spark: SparkSession, annals: Annals, observed: ServedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = ("--to", "lake", "--format", "parquet")
    monkeypatch.setenv("ANNALS_TOKEN", _TOKEN)
    assert annals("lake", "append", "--from", observed.url, *where).code == 0
    files = len([*Path("lake").rglob("*.parquet")])
    write_changes(observed, "more")
    end = observed.rows()[-1].position
    assert annals("lake", "append", "--from", observed.url, *where).out.startswith(f"position {end}, ")
    assert annals("lake", "optimize", *where, "--keep-hours", "0").code == 0
    assert len([*Path("lake").rglob("*.parquet")]) <= files + 10
    lake = Lake(spark, "parquet", str(Path("lake").absolute()))
    assert lake.table("deliveries").read().count() == 2
    assert annals("lake", "verify", *where).code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("append", "--from", "kafka"), 2, "--from kafka needs --kafka"),
        (("append", "--from", "sqlite:///annals.db"), 2, "cannot read a SQLite file"),
        (("append", "--from", "http://127.0.0.1:9", "--table", "entity"), 2, "--table entity is not one of log, "),
        (("append", "--from", "http://127.0.0.1:9"), 3, "the registry cannot be read"),
        (("append", "--from", "postgres://a:secret@127.0.0.1:9/a"), 2, "begins with postgresql://, not postgres://"),
        (
            ("append", "--from", "postgresql://a:secret@127.0.0.1:9/a"),
            3,
            "the database a at 127.0.0.1:9 cannot be read",
        ),
        (("append", "--from", "none"), 3, "there are no segments at none"),
        (("append", "--from", "gap"), 3, "position 1: the next segment is missing, while there are later ones"),
        (("verify",), 3, "there are no tables of the format parquet at lake"),
        (("optimize",), 3, "there are no tables of the format parquet at lake"),
        (("verify", "--head", "7:x"), 2, "--head is POSITION:HASH"),
        (("optimize", "--keep-hours", "-1"), 2, "--keep-hours"),
    ],
)
def test_what_is_missing_or_wrong_is_named(
    spark: SparkSession, annals: Annals, arguments: tuple[str, ...], code: int, says: str
) -> None:
    (later := Path("gap", "manifest", f"{SegmentRange(5, 9)}.json")).parent.mkdir(parents=True)
    later.touch()
    done = annals("lake", *arguments, "--to", "lake", "--format", "parquet")
    assert (done.code, done.out) == (code, "") and says in done.err and "secret" not in done.err, done
    assert not Path("lake").exists()


def test_a_database_that_cannot_be_read_says_why(
    spark: SparkSession, connectors: list[str], annals: Annals, postgres_url: str
) -> None:
    # Java's message; that of Py4J before it names only a call
    require_connector(connectors, "postgres")
    url = make_url(postgres_url)
    place = f"at {url.host}:{url.port} cannot be read"
    for changed, says in (
        (url.set(database="none"), f'the database none {place}: FATAL: database "none" does not exist'),
        (url.set(username="nobody"), f'the database {url.database} {place}: FATAL: role "nobody" does not exist'),
        (url, f"the database {url.database} {place}: it has no tables of a registry (ERROR: relation "),
    ):
        source = changed.render_as_string(hide_password=False)
        done = annals("lake", "append", "--from", source, "--to", "lake", "--format", "parquet")
        assert (done.code, done.out) == (ExitCode.STORE, ""), done.err
        assert f"annals: {says}" in done.err, done.err
    assert not Path("lake").exists()


def test_a_folder_that_cannot_be_written(
    spark: SparkSession, annals: Annals, registry: ServedLog, tmp_path: Path
) -> None:
    # docs/reference: exit code 3 for a store that cannot be used; the disk that is full is named
    source = str(tmp_path / "segments")
    append_segments(registry.database, open_folder(source))

    def refusal(place: str | Path) -> str:
        done = annals("lake", "append", "--from", source, "--to", place, "--format", "parquet", "--table", "log")
        assert (done.code, done.out) == (ExitCode.STORE, ""), done.err
        return done.err.splitlines()[-1]

    assert re.fullmatch(r"annals: \[Errno \d+\] [\w -]+: '/sys/lake'\.", refusal("/sys/lake"))
    with _small_disk(tmp_path / "small") as small:
        (there := small / "there").mkdir()
        subprocess.run(["mount", "-o", "remount,ro", small], check=True)
        assert refusal(there).startswith(f"annals: Mkdirs failed to create file:{there}/log/_")
        subprocess.run(["mount", "-o", "remount,rw", small], check=True)
        assert refusal(small / "lake") == (
            f"annals: No space left on device: the disk of {small / 'lake'} or of {tempfile.gettempdir()}, the local"
            " folder of Spark (spark.local.dir) is full."
        )


@contextmanager
def _small_disk(folder: Path) -> Iterator[Path]:
    """A filesystem with too little room for a lake."""
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"only root mounts filesystems: {mounted.stderr!r}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_session_that_does_not_start(spark: SparkSession, tmp_path: Path) -> None:
    # docs/reference: an error is one line on stderr, and the exit code names its kind
    killed = program(tmp_path / "killed", _KILLED_JAVA.format(home=tmp_path / "killed"))
    (file := tmp_path / "file").touch()
    unusable = str(file / "local")
    for local, settings in (
        (tempfile.gettempdir(), {"ANNALS_SPARK_JAVA": str(killed)}),
        (unusable, {"ANNALS_SPARK_CONF": json.dumps({**_CONF, "spark.local.dir": unusable})}),
    ):
        process = start(tmp_path, "parquet", "--from", "http://127.0.0.1:9", **settings)
        out, err = process.communicate(timeout=300)
        assert (process.returncode, out) == (ExitCode.STORE, ""), err
        assert "annals: Spark's Java process has ended while it started. " in err and local in err, err
        assert "Traceback" not in err and len(err.splitlines()) < 10, err


def test_verify_says_what_is_not_proven(spark: SparkSession, annals: Annals, example_log: ExampleLog) -> None:
    # docs/guides/lake: a lake may have some of the tables; nothing is proven without `log`
    lake, where = Lake(spark, "parquet", str(Path("lake").absolute())), ("--to", "lake", "--format", "parquet")
    (half, end), chain, entities = example_log.halves(), example_log.rows[-1].chain.hex(), example_log.table("entities")
    append(lake, example_log.source(half), ["entities"])
    append(lake, example_log.source(), ["interactions"])
    rows = {"log": end, "interactions": len(example_log.ends()), "entities": len(example_log.table("entities", half))}
    state = next(row.statehash.hex() for row in example_log.rows if row.position == half)
    lines = [f"{name}\t{half if name == 'entities' else end}\t{rows[name]}\tequal to the log\n" for name in rows]
    done = annals("lake", "verify", *where)
    assert done.out == "".join(lines) + f"position {end}, chain {chain}, state {state} at position {half}\n", done.err
    shutil.rmtree("lake/entities")
    done = annals("lake", "verify", *where)
    not_proven = "the state is not proven, because there is no table entities"
    assert (done.code, done.out) == (0, "".join(lines[:-1]) + f"position {end}, chain {chain}; {not_proven}\n")
    append(lake, example_log.source(), ["entities"])
    shutil.rmtree("lake/log")
    done, without = annals("lake", "verify", *where), "it cannot be compared, because log is missing"
    found = (f"interactions\t{end}\t{rows['interactions']}", f"entities\t{end}\t{len(entities)}")
    assert done.out == "log\t0\t0\tit is missing\n" + "".join(f"{line}\t{without}\n" for line in found)
    assert done.code == ExitCode.STORE
    remedy = "annals lake append makes it again, and then annals lake verify compares the other tables"
    assert f"log is missing, so no table is proven; {remedy}." in done.err and "remove" not in done.err
    append(lake, example_log.source(), ["log"])
    assert annals("lake", "verify", *where).code == 0
    # tables that are compared with a damaged log may be right themselves
    _damage_log(lake)
    done = annals("lake", "verify", *where)
    assert done.code == ExitCode.STORE
    assert f"log is not the one that was written, so no table is proven; remove its folder, {remedy}." in done.err


def _damage_log(lake: Lake) -> None:
    """Writes the first event of the table `log` a second time."""
    log = lake.table("log")
    log.commit(log.read().where("position = 1"), log.position(), lambda step: None)


def test_a_lake_that_is_ahead_of_a_restored_registry(
    spark: SparkSession, annals: Annals, growing: ServedLog, tmp_path: Path
) -> None:
    # docs/guides/backup: nothing is added
    backup, where = tmp_path / "backup.db", ("--to", "lake", "--format", "parquet", "--table", "log")
    with sqlite3.connect(growing.database.removeprefix("sqlite:///")) as store, sqlite3.connect(backup) as copy:
        store.backup(copy)
    backed_up = growing.rows()[-1].position
    write_changes(growing, "later")
    end = growing.rows()[-1].position
    assert annals("lake", "append", "--from", growing.url, *where).code == 0
    (home := tmp_path / "restored").mkdir()
    with serving(f"sqlite:///{backup}", home) as restored:
        done = annals("lake", "append", "--from", restored.url, *where)
    assert (done.code, done.out) == (ExitCode.STORE, "")
    assert done.err.endswith(
        f"annals: the source ends at position {backed_up}, but the lake is at {end}: it was restored from an older"
        " backup, or is not up to date. Nothing was added; choose the source that the lake has its log from, or another"
        " folder.\n"
    ), done.err


def test_a_lake_of_another_registry(
    spark: SparkSession, annals: Annals, example_log: ExampleLog, registry: ServedLog
) -> None:
    # the log of that registry is longer, and whole
    lake = Lake(spark, "parquet", str(Path("lake").absolute()))
    end = min({row.last for row in registry.rows()}.intersection(example_log.ends()))
    append(lake, example_log.source(end), ["log"])
    done = annals("lake", "append", "--from", registry.url, "--to", "lake", "--format", "parquet")
    assert (done.code, done.out) == (ExitCode.STORE, "")
    assert done.err.endswith(
        f"annals: it is another log than that of the lake: the chain hash differs at position {end}. Nothing was added;"
        " choose the source that the lake has its log from, or another folder.\n"
    ), done.err
    assert (lake.head().position, lake.existing_tables()) == (end, ["log"])


#: What a registry does not answer: the path of requests, and how many it answers before.
_OUTAGES: Final = {
    "the end of the log": ("/-/log/head", 0),
    "the plan of Spark": ("/-/log/head", 1),
    "a task of Spark": ("/-/log?", 0),
    "a task for documents": ("/-/documents/", 0),
}


def test_following_waits_for_the_registry(
    spark: SparkSession, registry: ServedLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # each outage lasts until it is noticed; what another try cannot cure ends the verb
    stop, outages, passed = Event(), [*_OUTAGES.values()], list[str]()

    def fault(_: str, path: str) -> Answer | None:
        if outages and path.startswith(outages[0][0]):
            passed.append(path)
            return Answer(503) if len(passed) > outages[0][1] else None
        if path == "/-/links":  # the last request of an append
            stop.set()
        return None

    def notice(text: str, _: int) -> None:
        assert text.startswith("the registry cannot be read: ") and text.endswith("answers 503; trying again"), text
        outages.pop(0)
        passed.clear()

    monkeypatch.setattr(spark_lake, "print_notice", notice)
    place = LakePlace("parquet", str(tmp_path / "lake"), ("log", "documents"))
    with faulty_proxy(registry.url, fault) as proxy:
        location = LogLocation("annals", registry=proxy.url)
        append_lake(place, location, lambda done, total: None, stop, seconds=0.01)
        assert not outages and stop.is_set()
        assert Lake(spark, "parquet", place.uri).head().position == registry.rows()[-1].position
        proxy.fault = lambda *_: Answer(401)
        with pytest.raises(InvalidInput, match="answers 401"):
            append_lake(place, location, lambda done, total: None, Event(), seconds=0.01)


@pytest.fixture
def far_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Sets the time zone of this process to one that is 14 hours ahead of UTC."""
    monkeypatch.setenv("TZ", "Etc/GMT-14")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("format", each_format())
@pytest.mark.usefixtures("far_east")
def test_optimizing_changes_no_row(new_lake: NewLake, example_log: ExampleLog, tmp_path: Path, format: str) -> None:
    lake, names, (half, end) = new_lake(format, tmp_path), ("interactions", "entities"), example_log.halves()
    for each in (half, end):
        append(lake, example_log.source(each), names)
    past = plain(lake.table("entities").read(half))
    with pytest.raises(NoTables, match="there are no tables named versions or changes of the format"):
        optimize(lake, names=("versions", "changes"))
    for keep_hours in (1, 0):
        optimize(lake, keep_hours, names)
        for name in names:
            stored = lake.table(name)
            assert plain(stored.read()) == example_log.table(name), name
            assert stored.position() == end, name
            # replaced files are removed after `keep_hours`, and with them the past positions that need them
            assert stored.positions()[-1] == end
            assert not keep_hours or half in stored.positions(), name
        if keep_hours:
            assert plain(lake.table("entities").read(half)) == past


@pytest.mark.long
@pytest.mark.parametrize("kind", ["segments", "postgres"])
def test_every_source_gives_the_same_lake(
    spark: SparkSession, connectors: list[str], kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    require_connector(connectors, "postgres")
    database = request.getfixturevalue("sqlite_url" if kind == "segments" else "postgres_url")
    with served_log(database, tmp_path) as registry:
        lake, end = Lake(spark, "parquet", str(tmp_path / "lake")), registry.rows()[-1].position
        for _ in range(2):
            append(lake, _source(spark, kind, database, tmp_path))
            write_changes(registry, "late")
        append(lake, _source(spark, kind, database, tmp_path))
        result = verify(lake)
        assert result.head.position == registry.rows()[-1].position > end
        assert not any(table.finding for table in result.tables), result
        assert lake.table("schema_fields").read().count() > 10


def _source(spark: SparkSession, kind: str, database: str, folder: Path) -> LogSource:
    if kind == "postgres":
        return from_postgres(spark, database)
    append_segments(database, open_folder(str(folder / "segments")))
    return from_segments(spark, str(folder / "segments"))


def start(home: Path, format: str, *options: str, verb: str = "append", **settings: str) -> subprocess.Popen[str]:
    """A verb of `annals lake` in a process of its own. settings: further ones in its environment."""
    command = [
        sys.executable,
        "-m",
        "annals",
        "lake",
        verb,
        "--to",
        str(home / "lake"),
        "--format",
        format,
        *options,
    ]
    defaults = {
        "ANNALS_SPARK_MASTER": "local[2]",
        "ANNALS_SPARK_MEMORY": "700m",
        "ANNALS_SPARK_CONF": json.dumps(_CONF),
    }
    env = environment(**(defaults | settings)) | {"SPARK_SUBMIT_OPTS": java_options()}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command,
        cwd=home,
        env=env,
        text=True,
        start_new_session=True,
        stdout=pipe,
        stderr=pipe,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a script's background process ignores it
    )


@pytest.mark.long
@pytest.mark.parametrize("format", FORMATS)
def test_kills(
    spark: SparkSession, connectors: list[str], growing: ServedLog, tmp_path: Path, format: FormatName
) -> None:
    # wherever a process is killed, the next one completes its work, and each event is stored once
    if format != "parquet":
        require_connector(connectors, format)
    chance, lake = random.Random(format), Lake(spark, format, str(tmp_path / "lake"))
    for kill in range(_KILLS):
        if kill % 4 == 0:
            write_changes(growing, f"k{kill}")
        files, process = _file_count(tmp_path), start(tmp_path, format, "--from", growing.url)
        wanted = files + chance.randint(1, 60)
        while process.poll() is None and _file_count(tmp_path) < wanted:
            time.sleep(0.005)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    out, err = (process := start(tmp_path, format, "--from", growing.url)).communicate(timeout=600)
    end = growing.rows()[-1].position
    assert process.returncode == 0 and out.startswith(f"position {end}, "), err
    result = verify(lake)
    assert result.head.chain == growing.rows()[-1].chain.hex()
    assert not any(table.finding for table in result.tables), result


@pytest.mark.long
@pytest.mark.parametrize("format", FORMATS)
def test_kills_of_optimize(
    spark: SparkSession, connectors: list[str], example_log: ExampleLog, tmp_path: Path, format: FormatName
) -> None:
    # docs/guides/lake: no row and no position changes; what is not done, or left behind, hinders no later run
    if format != "parquet":
        require_connector(connectors, format)
    lake, chance, names = Lake(spark, format, str(tmp_path / "lake")), random.Random(format), ("log", "entities")
    tables = [option for name in names for option in ("--table", name)]
    *_, before, half, end = example_log.ends()
    for each in (before, half):
        append(lake, example_log.source(each), names)
    killed = 0
    for _ in range(_KILLS_OF_OPTIMIZE):
        process = start(tmp_path, format, "--keep-hours", "0", *tables, verb="optimize")
        seen, wanted = {_files(tmp_path)}, chance.randint(2, 40)
        while process.poll() is None and len(seen) < wanted:
            seen.add(_files(tmp_path))
            time.sleep(0.002)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        assert lake.head().position == lake.table("entities").position() == half
        assert plain(lake.table("entities").read()) == example_log.table("entities", half)
    process = start(tmp_path, format, "--keep-hours", "0", *tables, verb="optimize")
    _, err = process.communicate(timeout=600)
    assert process.returncode == 0 and killed > 0, err
    append(lake, example_log.source(), names)
    result = verify(lake)
    assert [(table.name, table.position, table.finding) for table in result.tables] == [
        (name, end, "") for name in names
    ]


@pytest.mark.long
@pytest.mark.parametrize("format", FORMATS)
def test_two_processes_at_once(
    spark: SparkSession, connectors: list[str], growing: ServedLog, tmp_path: Path, format: FormatName
) -> None:
    # each event is stored once; a process that finds another one writing ends with an error that says so
    if format != "parquet":
        require_connector(connectors, format)
    lake, end = Lake(spark, format, str(tmp_path / "lake")), growing.rows()[-1].position
    processes = [start(tmp_path, format, "--from", growing.url) for _ in range(2)]
    ended = [(process.communicate(timeout=1200), process.returncode) for process in processes]
    assert any(code == 0 for _, code in ended), ended
    assert all(code == 0 or "another process writes to" in err for (_, err), code in ended), ended
    assert not any(table.finding for table in verify(lake).tables)
    assert lake.head().position == end
    with lake.writer_lock():
        _, err = (process := start(tmp_path, format, "--from", growing.url)).communicate(timeout=1200)
        assert process.returncode and "another process writes to" in err, err


@pytest.mark.long
def test_it_follows_until_it_is_stopped(
    spark: SparkSession, growing: ServedLog, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    lake = Lake(spark, "parquet", str(tmp_path / "lake"))
    process = start(tmp_path, "parquet", "--from", growing.url, "--follow", "--seconds", "0.1")
    request.addfinalizer(process.kill)  # it would wait for the registry of a test that has failed
    until(lambda: lake.table("schema_fields").position() > 0, 300)
    with _only_writer(lake):
        write_changes(growing, "late")
        end = growing.rows()[-1].position
        time.sleep(5)
        assert lake.head().position < end
    until(lambda: lake.table("schema_fields").position() == end, 300)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0 and f"position {end}, " in out, err
    assert "another process writes to" in err and "trying again" in err
    assert not any(table.finding for table in verify(lake).tables)


def test_a_signal_ends_it_while_spark_works(spark: SparkSession, tmp_path: Path) -> None:
    # docs/reference: "you can stop or kill the command at any time"; Ctrl-C ends a verb with exit code 130 and one line
    waiting, release = set[str](), Event()

    def hold_log(_: str, path: str) -> Answer:
        if "/-/log/head" in path:
            head = {"position": 0 if path.endswith("asof=0") else 1, "chain": "0" * 64}
            return Answer(200, {}, json.dumps(head).encode())
        waiting.add(path.partition("/-/")[0])
        release.wait()
        return Answer(503)

    codes = {signal.SIGINT: ExitCode.INTERRUPTED, signal.SIGTERM: -signal.SIGTERM}
    with faulty_proxy("", hold_log) as proxy, ExitStack() as processes:
        processes.callback(release.set)
        started = {}
        for number in codes:
            (home := tmp_path / number.name).mkdir()
            started[number] = start(home, "parquet", "--from", f"{proxy.url}/{number}")
            processes.callback(started[number].kill)
        until(lambda: len(waiting) == len(codes), 600)
        for number, process in started.items():
            process.send_signal(number)
        errors = {number: process.communicate(timeout=300)[1] for number, process in started.items()}
    assert {number: process.returncode for number, process in started.items()} == codes, errors
    assert errors[signal.SIGINT].endswith("\nannals: stopped by Ctrl-C before the work was done.\n"), errors
    assert "Traceback" not in errors[signal.SIGINT], errors
    assert not (tmp_path / "SIGINT" / "spark-warehouse").exists()


@contextmanager
def _only_writer(lake: Lake) -> Iterator[None]:
    """Waits until no other process writes to a lake, and lets none write during the block."""
    while True:
        with suppress(LakeBusy), lake.writer_lock():
            yield
            return
        time.sleep(0.01)


def _lag(registry: ServedLog) -> int:
    """The lag of its subscription."""
    return int(_listed(registry, "/subscriptions")["status"]["lag"])


def _state(registry: ServedLog) -> str:
    """The state of its link."""
    return str(_listed(registry, "/-/links")["status"]["state"])


def _listed(registry: ServedLog, path: str) -> dict[str, Any]:
    """The only member of a list."""
    (found,) = RemoteLog(registry.url, registry.token).members(path)
    return found


def _file_count(folder: Path) -> int:
    return len(_files(folder))


def _files(folder: Path) -> frozenset[str]:
    # Spark may remove folders during the walk, which makes `rglob` fail.
    return frozenset(f"{path}/{name}" for path, _, names in os.walk(folder / "lake") for name in names)
