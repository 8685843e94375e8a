"""Segments are verified from their files alone: every change is found, with its position."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annals.projections.segments.folder import MissingSegment, NoSegments, SegmentFolder
from annals.projections.segments.manifest import UnreadableManifestEntry
from annals.projections.segments.read import documents, rows
from annals.projections.segments.verify import verify_segments
from annals.projections.segments.write import SegmentSize, append_segments
from tests.support.registries.recorded import Registry

CONTENT = b"a document"
DIGEST = sha256(CONTENT).hexdigest()


@pytest.fixture
def place(sqlite_url: str, folder: SegmentFolder, tmp_path: Path) -> Path:
    """Segments of the positions 1 to 4, 5 to 8 and 9 to 12; each interaction has two events, that at 5 a document."""
    with Registry(sqlite_url) as registry:
        for n in range(6):
            doc: dict[str, Any] = {"doc": DIGEST} if n == 2 else {}
            registry.record((f"/dirs/d{n}", doc), (f"/dirs/d{n}/files/f", {}), documents={DIGEST: CONTENT})
        append_segments(sqlite_url, folder, SegmentSize(4))
    assert list(verify_segments(folder)) == []
    return tmp_path / "segments"


def entry(place: Path, number: int) -> Path:
    return sorted((place / "manifest").iterdir())[number]


def file(place: Path, kind: str, number: int) -> Path:
    path: str = json.loads(entry(place, number).read_text())[kind]["path"]
    return place / path


def change_entry(place: Path, number: int, **members: Any) -> None:
    path = entry(place, number)
    path.write_text(json.dumps(json.loads(path.read_text()) | members))


def write_changed_rows(place: Path, kind: str, change: Callable[[list[dict[str, Any]]], object]) -> None:
    """Changes rows of the second segment, and its manifest entry, so that only the rows show the change."""
    path = file(place, kind, 1)
    table = pq.read_table(path)
    rows = table.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    content = path.read_bytes()
    known = json.loads(entry(place, 1).read_text())[kind]
    change_entry(place, 1, **{kind: known | {"bytes": len(content), "sha256": sha256(content).hexdigest()}})


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def swapped(rows: list[dict[str, Any]]) -> None:
    rows[0], rows[1] = rows[1], rows[0]


CHAIN = "the chain hash differs: the interaction or its events were changed"
WHOLE = "an interaction is not whole"
GAP = "events are missing or out of order"
FACTS = "the event describes its interaction differently from the event before it"
ENDS = "the segment does not end as the manifest says"
#: The hash in a file's name, as a regular expression.
_DIGITS = r"[0-9a-f]{16}\.parquet"
NO_DOCUMENT = f"the document {DIGEST} is missing or changed"

#: Changes of rows in the second segment, whose positions are 5 to 8, and all findings.
FORGERIES: dict[str, tuple[str, Callable[[list[dict[str, Any]]], object], list[tuple[int, str]]]] = {
    "a state": ("log", lambda rows: rows[3].update(state=rows[3]["state"] + " "), [(7, CHAIN)]),
    "a revision": ("log", lambda rows: rows[3].update(revision=9), [(7, CHAIN)]),
    "a caller": ("log", lambda rows: [row.update(caller="eve") for row in rows[2:]], [(7, CHAIN)]),
    "a caller of one event": ("log", lambda rows: rows[3].update(caller="eve"), [(8, FACTS)]),
    "a state hash": (
        "log",
        lambda rows: [row.update(statehash=bytes(32)) for row in rows[2:]],
        [(7, CHAIN), (8, ENDS)],
    ),
    "no event": ("log", lambda rows: rows.pop(2), [(7, GAP)]),
    "an event twice": ("log", lambda rows: rows.insert(1, rows[0]), [(6, GAP), (5, CHAIN)]),
    "another order": ("log", swapped, [(5, GAP), (7, GAP), (6, GAP), (8, FACTS)]),
    "an end too early": ("log", lambda rows: rows.pop(), [(8, ENDS)]),
    "an unreadable event": (
        "log",
        lambda rows: rows[0].update(state='{"document":'),
        [(5, "the event cannot be read"), (5, CHAIN)],
    ),
    "other bytes": ("documents", lambda rows: rows[0].update(content=b"another"), [(5, NO_DOCUMENT)]),
    "no document": ("documents", lambda rows: rows.clear(), [(5, NO_DOCUMENT)]),
}


@pytest.mark.parametrize(("kind", "change", "findings"), FORGERIES.values(), ids=FORGERIES)
def test_changed_rows_are_found(
    place: Path,
    folder: SegmentFolder,
    kind: str,
    change: Callable[[list[dict[str, Any]]], object],
    findings: list[tuple[int, str]],
) -> None:
    write_changed_rows(place, kind, change)
    assert [tuple(finding) for finding in verify_segments(folder)] == findings


#: Changes of files, and all findings: position and beginning of the text. `{1}` stands for the second range.
FILES: dict[str, tuple[Callable[[Path], object], list[tuple[int, str]]]] = {
    "no log": (
        lambda p: file(p, "log", 1).unlink(),
        [(5, "log/{1} cannot be read: "), (5, "log/{1} cannot be read further: ")],
    ),
    "no documents": (
        lambda p: file(p, "documents", 1).unlink(),
        [(5, "documents/{1} cannot be read: "), (5, "documents/{1} cannot be read further: "), (5, NO_DOCUMENT)],
    ),
    "half a log": (
        lambda p: file(p, "log", 1).write_bytes(file(p, "log", 1).read_bytes()[:999]),
        [(5, "log/{1} is not the file that was written"), (5, "log/{1} cannot be read further: ")],
    ),
    "a file of other columns": (
        lambda p: file(p, "log", 1).write_bytes(file(p, "documents", 1).read_bytes()),
        [
            (5, "log/{1} is not the file that was written"),
            (5, "log/{1} cannot be read further: its columns are not those of a segment"),
        ],
    ),
    "a bit of the last byte": (
        lambda p: flip(file(p, "log", 2), -1),
        [(9, "log/{2} is not the file that was written"), (9, "log/{2} cannot be read further: ")],
    ),
    "no entry": (lambda p: entry(p, 1).unlink(), [(5, "the next segment is missing, while there are later ones")]),
    "no first entry": (
        lambda p: entry(p, 0).unlink(),
        [(1, "the next segment is missing, while there are later ones")],
    ),
    "half an entry": (
        lambda p: entry(p, 1).write_text('{"schemaversion": 1, "first"'),
        [(5, "manifest/"), (9, "the segment does not go on from the one before it"), (9, CHAIN)],
    ),
    "another chain": (
        lambda p: change_entry(p, 1, chain="00" * 32),
        [(8, ENDS), (9, "the segment does not go on from the one before it"), (9, CHAIN)],
    ),
    "another count": (lambda p: change_entry(p, 1, interactions=3), [(8, ENDS)]),
    "another range": (lambda p: change_entry(p, 1, first=4), [(5, "the segment does not go on"), (4, GAP)]),
}


@pytest.mark.parametrize(("change", "findings"), FILES.values(), ids=FILES)
def test_damaged_files_are_found(
    place: Path, folder: SegmentFolder, change: Callable[[Path], object], findings: list[tuple[int, str]]
) -> None:
    names = {f"{{{n}}}": str(range) for n, range in enumerate(folder.ranges())}
    change(place)
    found = list(verify_segments(folder))
    assert [position for position, _ in found] == [position for position, _ in findings]
    for (_, text), (_, expected) in zip(found, findings, strict=True):
        for mark, name in names.items():
            expected = expected.replace(mark, name + "-" + _DIGITS)
        assert re.match(expected, text)


@pytest.mark.parametrize("read", [rows, documents])
def test_a_gap_is_no_end_of_the_log(
    place: Path, folder: SegmentFolder, read: Callable[[SegmentFolder], Iterator[object]]
) -> None:
    # EV-79: a reader that takes what is left for the log would lose events
    for number, error, text in (
        (1, MissingSegment, "position 5: the next segment is missing, while there are later ones"),
        (0, MissingSegment, "position 1: the next segment is missing, while there are later ones"),
        (0, NoSegments, f"there are no segments at {place}"),
    ):
        entry(place, number).unlink()
        with pytest.raises(error, match=f"^{text}$"):
            next(read(folder))


def test_segments_that_are_added_meanwhile_are_no_gap(place: Path, folder: SegmentFolder) -> None:
    last, added = entry(place, 2), place / "added.json"
    last.rename(added)

    def add(reached: int, end: int) -> None:
        if added.exists():
            added.rename(last)

    assert list(verify_segments(folder, add)) == []
    assert last.exists()


def test_an_entry_of_a_newer_form_is_refused(place: Path, folder: SegmentFolder) -> None:
    change_entry(place, 1, schemaversion=99)
    with pytest.raises(UnreadableManifestEntry, match="has schema version 99, but this program knows 1 and 2"):
        list(folder.entries(folder.ranges()))


def test_damaged_segments_can_be_rewritten(place: Path, folder: SegmentFolder, sqlite_url: str) -> None:
    # The damaged file and its entry are removed; all later segments stay as they are.
    before = {path: path.read_bytes() for path in place.rglob("*.*")}
    file(place, "log", 1).unlink()
    entry(place, 1).unlink()
    assert append_segments(sqlite_url, folder, SegmentSize(4)).segments == 1
    assert {path: path.read_bytes() for path in place.rglob("*.*")} == before
    assert list(verify_segments(folder)) == []
