"""A rebuild by Spark refuses a tampered log: it reports the position and loads nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from sqlalchemy import create_engine

from annals.api.cli.main import main
from annals.commands.store.compression.state_compression import compress_state, decompress_state
from annals.commands.store.hashes import EMPTY_HASH, ChainHasher
from annals.projections.log.table_rows import LogTableRow, interaction_of, log_row
from annals.projections.segments.folder import open_folder
from annals.projections.segments.write import SegmentSize, append_segments
from annals.spark_projections.log_schema import LOG_SCHEMA, LogHead
from annals.spark_projections.sources import annals, segments
from annals.spark_projections.verify_log import ChainAnchors, UnverifiedLog, verify_log
from tests.projections.segments.test_verify import change_entry, entry, file, flip, write_changed_rows
from tests.spark_projections.conftest import require_connector
from tests.spark_projections.served_registry import ServedLog, log_rows
from tests.support.registries.recorded import Registry

Rebuild = Callable[..., tuple[int, str]]

#: A row that only a rebuild brings back.
LOST = "DELETE FROM entity WHERE tree_key = '!dirs!d1'"


@pytest.fixture
def rebuild(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Rebuild:
    """`annals rebuild --engine spark` in the session of the tests: its exit code, and its error output."""

    def run(*options: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["annals", "rebuild", "--engine", "spark", *options])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(str(ended.value.code)), " ".join(capsys.readouterr().err.split())

    return run


@pytest.fixture
def store(sqlite_url: str, tmp_path: Path) -> Iterator[Registry]:
    """A registry with twelve positions, two for each interaction, in the segments 1 to 4, 5 to 8 and 9 to 12."""
    with Registry(sqlite_url) as store:
        filled(store)
        append_segments(sqlite_url, open_folder(str(tmp_path / "segments")), SegmentSize(4))
        yield store


def filled(registry: Registry) -> None:
    """Records six interactions, and deletes a row of the read model."""
    for n in range(6):
        registry.record((f"/dirs/d{n % 4}", {"n": n}), (f"/dirs/d{n % 4}/files/f", {"n": n}))
    with registry.store.engine.begin() as connection:
        connection.exec_driver_sql(LOST)


def swap(one: Path, other: Path) -> None:
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def swap_entries(folder: Path) -> None:
    """Swaps the files of events of the first two segments in the manifest."""
    first, second = (json.loads(entry(folder, n).read_text())["log"] for n in (0, 1))
    change_entry(folder, 0, log=second)
    change_entry(folder, 1, log=first)


def chained_again(folder: Path) -> None:
    """Changes events, and adapts all hashes of rows, files and manifest to them."""
    chain = EMPTY_HASH
    for number in range(3):
        path = file(folder, "log", number)
        table = pq.read_table(path)
        found = [LogTableRow(**row) for row in table.to_pylist()]
        changed = [row._replace(state=row.state.replace('"n":1', '"n":7')) for row in found]
        made, previous = list[LogTableRow](), chain
        for _, some in groupby(changed, lambda row: row.last):
            events = list(some)
            digest = ChainHasher(chain, interaction_of(events[0]))
            for row in events:
                digest.add(log_row(row))
            chain = digest.digest(events[0].statehash)
            made += [row._replace(chain=chain) for row in events]
        pq.write_table(pa.Table.from_pylist([row._asdict() for row in made], schema=table.schema), path)
        content, known = path.read_bytes(), json.loads(entry(folder, number).read_text())["log"]
        log = known | {"bytes": len(content), "sha256": sha256(content).hexdigest()}
        change_entry(folder, number, previous=previous.hex(), chain=chain.hex(), log=log)


def without_a_row(folder: Path) -> None:
    write_changed_rows(folder, "log", lambda log_rows: log_rows.pop(2))
    change_entry(folder, 1, events=3)


def with_a_null(folder: Path) -> None:
    path = file(folder, "log", 1)
    table = pq.read_table(path)
    nullable = pa.schema([field.with_nullable(True) for field in table.schema])
    found = table.to_pylist()
    found[2]["caller"] = None
    pq.write_table(pa.Table.from_pylist(found, schema=nullable), path)
    content, known = path.read_bytes(), json.loads(entry(folder, 1).read_text())["log"]
    change_entry(folder, 1, log=known | {"bytes": len(content), "sha256": sha256(content).hexdigest()})


def with_another_hash(folder: Path) -> None:
    change_entry(folder, 1, chain="00" * 32)
    change_entry(folder, 2, previous="00" * 32)


CHAIN = "the chain hash differs: the interaction or its events were changed"
OTHER_BYTES = "is not the file that was written"
OTHER_ROWS = "does not hold what the manifest says"
#: A change of the folder, and the message that refuses it; `{0}`, `{1}` and `{2}` are the files of events.
FORGERIES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a flipped byte": (lambda p: flip(file(p, "log", 1), 700), f"position 5: log/{{1}} {OTHER_BYTES}"),
    "no file": (lambda p: file(p, "log", 1).unlink(), "position 5: log/{1} cannot be read: "),
    "swapped files": (lambda p: swap(file(p, "log", 0), file(p, "log", 1)), f"position 1: log/{{0}} {OTHER_BYTES}"),
    "no entry": (lambda p: entry(p, 1).unlink(), "position 5: the next segment is missing, while there are later ones"),
    "half an entry": (lambda p: entry(p, 1).write_text('{"schemaversion": 2'), "is not an entry of a manifest"),
    "an entry with another hash": (
        lambda p: change_entry(p, 1, chain="00" * 32),
        "position 9: the segment does not go on from the one before it",
    ),
    "entries with another hash": (
        with_another_hash,
        f"position 5: log/{{1}} {OTHER_ROWS}",
    ),
    "swapped files that the manifest names": (swap_entries, f"position 1: log/{{1}} {OTHER_ROWS}"),
    "a changed state": (
        lambda p: write_changed_rows(
            p, "log", lambda log_rows: log_rows[0].update(state=log_rows[0]["state"].replace('"n":2', '"n":8'))
        ),
        f"{{1}}, position 5: {CHAIN}",
    ),
    "a changed caller": (
        lambda p: write_changed_rows(p, "log", lambda log_rows: [row.update(caller="eve") for row in log_rows[2:]]),
        f"{{1}}, position 7: {CHAIN}",
    ),
    "a removed row": (without_a_row, "{1}, position 7: events are missing or out of order"),
    "a missing value": (with_a_null, "{1}, position 7: a column has no value"),
    "another past with all hashes of its own": (
        chained_again,
        "position 3: the source has another log than this registry from this interaction on",
    ),
}


#: Those of `make test`: one found in the manifest, one in the files, one in the rows, one in the store.
SHORT = ("no entry", "a flipped byte", "a changed state", "another past with all hashes of its own")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(*forgery, id=name, marks=() if name in SHORT else pytest.mark.long)
        for name, forgery in FORGERIES.items()
    ],
)
def test_tampered_segments_are_refused(
    rebuild: Rebuild, store: Registry, tmp_path: Path, change: Callable[[Path], object], said: str
) -> None:
    # P-14: a rebuild loads only events that are as they were recorded
    folder, before = tmp_path / "segments", store.tables()
    names = [file(folder, "log", number).name for number in range(3)]
    change(folder)
    code, line = rebuild("--from", "segments", "--folder", str(folder), "--database", store.url)
    expected = said.format(*names)
    assert (code, expected in line) == (3, True), line
    assert "Nothing was loaded; annals segments verify" in line
    assert store.tables() == before


@pytest.mark.parametrize(
    ("head", "code", "said"),
    [
        ("12:{12}", 0, ""),
        ("6:{6}", 0, ""),
        ("6:{12}", 3, "position 6: the chain hash is {6}, and not that of --head"),
        ("7:{12}", 3, "position 7: no interaction ends at the position of --head"),
        ("14:{12}", 3, "position 12: the source ends before position 14 of --head"),
        ("12", 2, "--head is POSITION:HASH"),
    ],
)
@pytest.mark.long
def test_a_head_that_was_noted_elsewhere(
    rebuild: Rebuild, store: Registry, tmp_path: Path, head: str, code: int, said: str
) -> None:
    # P-14: an attacker who can replace all hashes cannot replace the one that is stored elsewhere
    before = store.tables()
    ends = {str(row.last): row.chain.hex() for row in log_rows(store.url)}

    def filled_in(words: str) -> str:
        for position, chain in ends.items():
            words = words.replace(f"{{{position}}}", chain)
        return words

    options = ("--from", "segments", "--folder", str(tmp_path / "segments"), "--database", store.url)
    found, line = rebuild(*options, "--head", filled_in(head))
    assert (found, filled_in(said) in line) == (code, True), line
    assert (store.tables() == before) == (code != 0)


def test_tampered_database_rows_are_refused(rebuild: Rebuild, connectors: list[str], postgres_url: str) -> None:
    # P-14: the rows of live entities are right, so the state hash does not show the change
    require_connector(connectors, "postgres")
    with Registry(postgres_url) as store:
        filled(store)
        assert rebuild("--from", "postgres", "--database", postgres_url)[0] == 0
        engine = create_engine(postgres_url)
        with engine.begin() as connection:
            connection.exec_driver_sql(LOST)
            stored = connection.exec_driver_sql("SELECT state FROM log WHERE position = 3").scalar_one()
            state = decompress_state(stored).replace(b'"n":1', b'"n":7')
            connection.exec_driver_sql("UPDATE log SET state = %s WHERE position = 3", (compress_state(state),))
        engine.dispose()
        before = store.tables()
        code, line = rebuild("--from", "postgres", "--database", postgres_url)
        assert (code, f"position 3: {CHAIN}. Nothing was loaded; annals log verify" in line) == (3, True), line
        assert store.tables() == before


def log_of(spark: SparkSession, found: list[LogTableRow]) -> DataFrame:
    """A log in memory."""
    return spark.createDataFrame([tuple(row) for row in found], LOG_SCHEMA)


@pytest.mark.long
@pytest.mark.parametrize("size", [5, 10_000])
def test_ranges_hold_together(spark: SparkSession, store: Registry, size: int) -> None:
    # P-14: wherever a log is cut into ranges, and in whatever order its rows come
    found = log_rows(store.url)
    log = log_of(spark, found).repartition(3, "stream")
    end = LogHead(12, found[-1].chain.hex())
    assert verify_log(log, ChainAnchors(head=end), size=size) == end
    assert verify_log(log.where("last < 0"), size=size) == LogHead(0, EMPTY_HASH.hex())
    # A missing row is reported at its own position or at the first one of its interaction.
    for gone, position in ((1, "1"), (4, "[34]"), (9, "9"), (12, "1[12]")):
        with pytest.raises(UnverifiedLog, match=rf"^position {position}: "):
            verify_log(log_of(spark, [row for row in found if row.position != gone]), size=size)
    for changes, position in (({"last": 99}, "[78]"), ({"last": -1}, "[578]"), ({"chain": bytes(32)}, "8")):
        forged = [row._replace(**changes) if row.position == 8 else row for row in found]
        with pytest.raises(UnverifiedLog, match=rf"^position {position}: "):
            verify_log(log_of(spark, forged), size=size)


def test_the_log_of_a_served_registry_is_proved(spark: SparkSession, registry: ServedLog, tmp_path: Path) -> None:
    # P-14: over HTTP and from segments, with salts
    append_segments(registry.database, open_folder(str(tmp_path / "lake")), SegmentSize(30))
    last = registry.rows()[-1]
    end = LogHead(last.last, last.chain.hex())
    assert verify_log(annals.read(spark, registry.url), ChainAnchors(head=end)) == end
    assert (
        verify_log(segments.read_verified(spark, str(tmp_path / "lake")), ChainAnchors(head=end), in_files=True) == end
    )
