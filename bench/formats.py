"""Checks of documents compared with the bare libraries, and Resources with many Versions.

The verdicts are not known before, the processes are warm: what a client waits for that writes a Version. Of Avro and
JSON Structure a check does more than the library that it is compared with: it reads JSON without losing a digit or a
member, looks into every default, and makes the form in which Versions are compared; these figures have no bound.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any, Final

from annals.api.registry.open_registry import open_registry
from annals.api.settings.settings import Settings
from annals.commands.command_bus import CommandBus
from annals.commands.documents.document_checker import DocumentChecker
from annals.domain import formats
from annals.domain.decisions.changes.documents import digest
from annals.domain.decisions.checks.document_checks import CompatibilityCheck, DocumentCheck, FormatCheck
from annals.domain.decisions.commands import WriteMethod, WriteTree
from bench import documents
from bench.documents import DOCUMENTS, members_for
from bench.figures import Figure, Want
from bench.memory import resident
from bench.places import Place

SIZES: Final = {"2 kB": 2_000, "200 kB": 200_000}
SCHEMA: Final = "/schemagroups/g/schemas/s"
#: Formats whose library does less than a check; see the module.
MORE: Final = frozenset({"avro/1.11", "jsonstructure/draft-04"})
#: Documents beyond the first, on which the processes get warm.
TURNS: Final = 7
#: Versions written one after the other at each length of the line.
AT_EACH: Final = 5

_marks = (f"mark {number}" for number in count(1))


def measure(place: Place, quick: bool) -> Iterator[Figure]:
    """Each format alone, which no store has a part in; then lines of Versions in every store."""
    if place.name == "SQLite":
        checker = DocumentChecker()
        for format in DOCUMENTS:
            for words, size in SIZES.items():
                if not (quick and size > 10_000):
                    yield from _of_format(checker, format, words, size)
    yield from _line(place, (10, 30) if quick else (100, 300, 1000))


# -- one document -----------------------------------------------------------------------------------------------------


def _of_format(checker: DocumentChecker, format: str, words: str, size: int) -> Iterator[Figure]:
    made = DOCUMENTS[format]
    members = members_for(made, size)
    small = size < 10_000

    def checked() -> float:
        content = made(members, next(_marks))
        return _asked(checker, {FormatCheck(format, digest(content))}, {digest(content): content})

    def bare() -> float:
        content = made(members, next(_marks))
        return _seconds(lambda: BARE[format](content))

    bound = None if format in MORE else 10 if small else 5
    yield _compared(f"Check of {format}", words, checked, bare, "by the bare library", bound)
    room = formats.find_format(format)
    assert room is not None
    older, parse = made(members - 1, "older"), room.load().parse
    known = parse(older, format)

    def compared() -> float:
        content = made(members, next(_marks))
        new, old = FormatCheck(format, digest(content)), FormatCheck(format, digest(older))
        asked: set[DocumentCheck] = {new, CompatibilityCheck(new, old), CompatibilityCheck(old, new, "writer")}
        return _asked(checker, asked, {digest(content): content, digest(older): older})

    def by_hand() -> float:
        content = made(members, next(_marks))

        def compare() -> None:
            new, unreadable = parse(content, format), room.load().incompatibilities
            assert unreadable(new, known, "reader") is not None and unreadable(known, new, "writer") is not None

        return _seconds(compare)

    yield _compared(
        f"Check of {format} and its compatibility", words, compared, by_hand, "in this process", 3 if small else 2
    )
    if format.startswith("avro"):
        name = "Check of avro/1.11 and its compatibility, Apache's checker"
        yield _compared(name, words, compared, lambda: _apache(made(members, next(_marks)), older), "by avro", 5)


def _compared(
    what: str, words: str, measured: Callable[[], float], floor: Callable[[], float], how: str, bound: float | None
) -> Figure:
    """Medians of turns taken by both, and of the ratio in each, because the machine's pace changes within seconds."""
    measured(), floor()
    turns = [(measured(), floor()) for _ in range(TURNS)]
    ours, theirs = median(one for one, _ in turns), median(other for _, other in turns)
    ours_text, floor_text = f"{1e3 * ours:.2f} ms", f"{1e3 * theirs:.2f} ms {how}"
    ratio = median(one / other for one, other in turns)
    return Figure(what, "none", words, ours_text, floor_text, ratio, Want.AT_MOST, bound, " x")


def _asked(checker: DocumentChecker, questions: set[DocumentCheck], contents: dict[str | None, bytes]) -> float:
    since = time.perf_counter()
    verdicts = checker.check(questions, contents.__getitem__)
    seconds = time.perf_counter() - since
    assert verdicts.keys() == questions and not any(verdicts[one] for one in questions if isinstance(one, FormatCheck))
    return seconds


def _seconds(work: Callable[[], Any]) -> float:
    since = time.perf_counter()
    work()
    return time.perf_counter() - since


# -- libraries --------------------------------------------------------------------------------------------------------


def _fastavro(content: bytes) -> None:
    import fastavro

    fastavro.parse_schema(json.loads(content))


def _apache(content: bytes, older: bytes) -> float:
    """Seconds of Apache's own library, both ways."""
    from avro.compatibility import ReaderWriterCompatibilityChecker
    from avro.schema import parse

    known = parse(older.decode())

    def compare() -> None:
        new = parse(content.decode())
        for reader, writer in ((new, known), (known, new)):
            checker: Any = ReaderWriterCompatibilityChecker
            checker().get_compatibility(reader, writer)

    return _seconds(compare)


def _jsonschema(content: bytes) -> None:
    import jsonschema

    jsonschema.Draft7Validator.check_schema(json.loads(content))


def _jsonstructure(content: bytes) -> None:
    from json_structure import SchemaValidator

    assert not SchemaValidator(extended=True).validate(json.loads(content))


def _protoc(content: bytes) -> None:
    from annals.domain.formats.protobuf.protoc import compile_text

    assert compile_text(content.decode()).descriptor is not None


def _xmlschema(content: bytes) -> None:
    import xmlschema

    xmlschema.XMLSchema10(content.decode())


def _graphql(content: bytes) -> None:
    import graphql

    graphql.build_schema(content.decode())


def _openapi(content: bytes) -> None:
    import openapi_spec_validator

    openapi_spec_validator.validate(json.loads(content))


BARE: Final[dict[str, Callable[[bytes], None]]] = {
    "avro/1.11": _fastavro,
    "jsonschema/draft-07": _jsonschema,
    "jsonstructure/draft-04": _jsonstructure,
    "protobuf/3": _protoc,
    "xsd/1.0": _xmlschema,
    "graphql/october2021": _graphql,
    "openapi/3.1": _openapi,
}


# -- many Versions ----------------------------------------------------------------------------------------------------


def _line(place: Place, lengths: tuple[int, ...]) -> Iterator[Figure]:
    """A new Version that is compared with all that it descends from, both ways: linear in them."""
    members = members_for(documents.avro, 2_000)
    with place.fresh() as (database, _), closing(open_registry(Settings(database=database))) as registry:
        _write(registry.command_bus, members, compatibility="full_transitive")
        written, shortest = 1, 0.0
        for length in lengths:
            for _ in range(written, length):
                _write(registry.command_bus, members)
            seconds = median(_seconds(lambda: _write(registry.command_bus, members)) for _ in range(AT_EACH))
            written = length + AT_EACH
            each = seconds / length
            shortest = shortest or each
            yield Figure(
                "New Version under full_transitive",
                place.name,
                f"{length:,} Versions of 2 kB",
                f"{1e3 * seconds:.0f} ms, {1e6 * each:.0f} µs a Version",
                f"{1e6 * shortest:.0f} µs a Version at {lengths[0]}",
                each / shortest,
                Want.AT_MOST,
                1.5,
                " x",
            )
        yield from _memory(place, lengths[-1])


def _memory(place: Place, length: int) -> Iterator[Figure]:
    tasks = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    names = {
        pid: Path(f"/proc/{pid}/cmdline").read_bytes() for task in tasks for pid in map(int, task.read_text().split())
    }
    taken = [resident(pid) / 2**20 for pid, name in names.items() if b"annals.commands.documents.check_server" in name]
    if taken:
        megabytes, size = " + ".join(f"{one:.0f}" for one in taken), f"{length:,} Versions, every format used"
        what = "Memory of the processes that check"
        yield Figure(what, place.name, size, f"{megabytes} MB", "2048 MB each", max(taken), Want.AT_MOST, 600, " MB")


def _write(command_bus: CommandBus, members: int, **meta: str) -> None:
    """One more Version, other than all before it."""
    tree: dict[str, Any] = {"format": "Avro/1.11", "schema": json.loads(documents.avro(members, next(_marks)))}
    if meta:
        tree["meta"] = meta
        command_bus.submit(WriteTree(SCHEMA, tree, WriteMethod.PUT)).result()
    else:
        command_bus.submit(WriteTree(SCHEMA, tree, WriteMethod.POST)).result()
