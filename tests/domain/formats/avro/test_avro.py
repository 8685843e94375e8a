"""The Avro format, tested with the tables in `avro.yaml`, Apicurio's checker, and hostile documents."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import fastavro
import pytest
import yaml

from annals.domain.formats import avro
from annals.domain.formats.contract import MAX_FRAGMENT, MAX_INCOMPATIBILITIES, InvalidDocument
from tests.domain.formats.independent import Refused, check

_TABLES = yaml.load(Path(__file__).with_name("avro.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)


def table(name: str, title: str = "rule") -> pytest.MarkDecorator:
    """Runs a test once for each row of a table."""
    return pytest.mark.parametrize("row", _TABLES[name], ids=lambda row: row[title].replace(" ", "-"))


def text(document: Any) -> str:
    return json.dumps(document)


def read(document: Any, release: str = "1.11") -> Any:
    return avro.parse(text(document).encode(), f"Avro/{release}")


def refused(document: bytes, name: str = "Avro/1.11") -> InvalidDocument:
    """Returns the violation of a document; asserts that it is found within the time limit."""
    start = time.process_time()
    with pytest.raises(InvalidDocument) as caught:
        avro.parse(document, name)
    assert time.process_time() - start < 10
    return caught.value


@table("valid")
def test_schemas(row: dict[str, Any]) -> None:
    # SC-10: documents that Avro allows are accepted.
    read(row["document"], row.get("avro", "1.11"))


@table("invalid")
def test_documents_that_are_no_schemas(row: dict[str, Any]) -> None:
    # SC-10, SC-16: documents that Avro forbids are refused, with place and fragment; the declared release counts.
    violation = refused(text(row["document"]).encode(), f"Avro/{row.get('avro', '1.11')}")
    assert violation.location is not None
    assert violation.location.pointer == row["at"]
    assert violation.location.fragment == _compact(_at(row["document"], row["at"]))[:MAX_FRAGMENT]
    assert row.get("says", "") in violation.text


@table("wrong_language")
def test_other_languages(row: dict[str, Any]) -> None:
    # SC-14: an empty document is invalid. SC-16: broken JSON and other languages are refused. V-14: with the line.
    spot = refused(row["text"].encode()).location
    assert (spot.line if spot else None) == row.get("line")


@pytest.mark.parametrize("name", ["avro/1.8", "AVRO/1.8.2", "Avro/1.8.x"])
def test_the_name_is_read_in_any_case(name: str) -> None:
    # CM-14, SC-16: letter case does not count, and the release does: defaults of enums exist from 1.9 on.
    document = text({"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}).encode()
    avro.parse(document, name)
    refused(document, name.replace("1.8", "1.9"))


@table("valid")
def test_another_registry_takes_schemas(row: dict[str, Any]) -> None:
    # SC-39: valid here means valid there, except in rows with a reason.
    assert _accepted_elsewhere(text(row["document"])) == ("apicurio" not in row)


@table("invalid")
def test_another_registry_refuses_what_is_no_schema(row: dict[str, Any]) -> None:
    # SC-39: invalid here means invalid there, except in rows with a reason.
    assert _accepted_elsewhere(text(row["document"])) == ("apicurio" in row)


@table("changes", "change")
def test_changes(row: dict[str, Any]) -> None:
    # SC-36: whether each change is allowed, in both directions. SC-38: both directions together are `full`.
    older, newer = (read(_named(row[side]), row.get("avro", "1.11")) for side in ("older", "newer"))
    allowed = [
        letter for letter, pair in (("B", (newer, older)), ("F", (older, newer))) if not avro.incompatibilities(*pair)
    ]
    assert " ".join(allowed) == row["allowed"]


@table("changes", "change")
def test_another_registry_allows_the_same_changes(row: dict[str, Any]) -> None:
    # SC-39: the rows of SC-36 have the same result there, except for rows with a reason.
    older, newer = (text(_named(row[side])) for side in ("older", "newer"))
    allowed = [mode for mode in ("backward", "forward") if check("avro", mode, older, newer).compatible]
    agrees = " ".join(mode[0].upper() for mode in allowed) == row["allowed"]
    assert agrees == ("apicurio" not in row)
    assert check("avro", "full", older, newer).compatible == (len(allowed) == 2)


@table("resolution")
def test_resolution(row: dict[str, Any]) -> None:
    # SC-36: the rules of the format, each with place and fragment in both documents.
    differences = avro.incompatibilities(read(row["reader"]), read(row["writer"]))
    places = [(one.reader.pointer, one.writer.pointer) for one in differences if one.reader and one.writer]
    why = [f"{one.rule} {reader} {writer}" for one, (reader, writer) in zip(differences, places, strict=True)]
    assert why == row.get("why", [])
    for one in differences:
        assert one.reader and one.writer
        assert one.reader.fragment == _compact(_at(row["reader"], one.reader.pointer))[:MAX_FRAGMENT]
        assert one.writer.fragment == _compact(_at(row["writer"], one.writer.pointer))[:MAX_FRAGMENT]


@table("resolution")
def test_another_registry_resolves_the_same(row: dict[str, Any]) -> None:
    # SC-39: resolution has the same result there, except for rows with a reason.
    verdict = check("avro", "backward", text(row["writer"]), text(row["reader"]))
    agrees = verdict.compatible == ("why" not in row)
    assert agrees == ("apicurio" not in row)


@table("canonical")
def test_canonical_form(row: dict[str, Any]) -> None:
    # The Parsing Canonical Form is equal to that of an Avro library, and is its own canonical form.
    parsed = read(row["document"])
    assert avro.canonical_form(parsed).decode() == row["text"]
    assert fastavro.schema.to_parsing_canonical_form(row["document"]) == row["text"]
    assert avro.canonical_form(read(json.loads(row["text"]))).decode() == row["text"]


def test_the_number_of_differences_is_limited() -> None:
    fields = [{"name": f"f{at}", "type": "int"} for at in range(5000)]
    differences = avro.incompatibilities(read(_named({"fields": fields})), read(_named({"fields": []})))
    assert [one.reader.pointer for one in differences if one.reader] == [
        f"/fields/{at}" for at in range(MAX_INCOMPATIBILITIES)
    ]


def _deep(levels: int) -> bytes:
    return b'{"type":"array","items":' * levels + b'"int"' + b"}" * levels


def _chain(length: int) -> dict[str, Any]:
    """Returns a record with records as fields, each of which refers to the one before."""
    records = [{"name": f"f{at}", "type": _record(at)} for at in range(length)]
    return {"type": "record", "name": "Chain", "fields": records}


def _record(at: int) -> dict[str, Any]:
    inner = [{"name": "next", "type": f"R{at - 1}"}] if at else []
    return {"type": "record", "name": f"R{at}", "fields": inner}


def _doubling(levels: int) -> dict[str, Any]:
    """Returns a schema with a default that is wrong only at the deepest of many levels of unions of two records."""
    fields: list[dict[str, Any]] = []
    default: Any = {"v": "no number"}
    for level in range(levels):
        below: Any = "int" if level == 0 else [f"A{level - 1}", f"B{level - 1}"]
        pair = [
            {"type": "record", "name": f"{side}{level}", "fields": [{"name": "v", "type": below}]}
            for side in ("A", "B")
        ]
        fields.append({"name": f"f{level}", "type": pair})
        default = {"v": default} if level else default
    fields.append({"name": "last", "type": [f"A{levels - 1}", f"B{levels - 1}"], "default": default})
    return {"type": "record", "name": "R", "fields": fields}


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(_deep(100_000), id="deep nesting"),
        pytest.param(b"[" * 1_000_000, id="a million brackets"),
        pytest.param(b'{"type":"fixed","name":"F","size":' + b"9" * 500_000 + b"}", id="a number of 500,000 digits"),
        pytest.param(b'{"type":"fixed","name":"F","size":1e999999999}', id="a number out of range"),
        pytest.param(b'{"type":"record","name":"R\xff","fields":[]}', id="invalid UTF-8"),
        pytest.param(b'"\\ud800"', id="half of a surrogate pair"),
        pytest.param(b'{"type":"record","name":"R\\u0000","fields":[]}', id="NUL in a name"),
        pytest.param(b"\x00" * 1000, id="NULs"),
        pytest.param(b'"' + b"a" * 1_000_000 + b'"', id="a name of a million letters"),
        pytest.param(b'{"type":"record","name":"' + b"a" * 1_000_000 + b'!","fields":[]}', id="a long bad name"),
        pytest.param(b" " * 50_000_000 + b"1", id="50 MB"),
        pytest.param(b'"file:///etc/passwd"', id="a reference to a file"),
        pytest.param(b'{"type":"http://127.0.0.1/"}', id="a reference to an address"),
        pytest.param(json.dumps(_doubling(60)).encode(), id="2 to the 60 ways to fit a default"),
        pytest.param(
            b'{"type":"record","name":"R","__fastavro_parsed":true,"__named_schemas":{},"fields":[{"name":"a"}]}',
            id="a schema that claims to be checked already",
        ),
    ],
)
@pytest.mark.parametrize("name", ["Avro/1.8", "Avro/1.12"])
def test_hostile_documents_are_refused(document: bytes, name: str) -> None:
    # SC-10: a clear error within bounded time, and no other exception.
    violation = refused(document, name)
    assert len(violation.text) <= 1000
    assert violation.location is None or len(violation.location.fragment or "") <= MAX_FRAGMENT


def test_long_chains_of_records_are_read_and_compared() -> None:
    # Nothing recurses along references, so 20,000 records that refer to each other are no problem.
    start = time.process_time()
    chain = read(_chain(20_000))
    read_in = time.process_time() - start
    assert not avro.incompatibilities(chain, chain)
    assert avro.canonical_form(chain)
    assert read_in < 10 and time.process_time() - start < 10


def test_comparing_many_versions_is_quick() -> None:
    # One new document of 2 kB is compared with a thousand older ones, so each comparison has to be fast.
    fields = [{"name": f"field_{at}", "type": ["null", "string"], "default": None} for at in range(30)]
    older, newer = read(_named({"fields": fields})), read(_named({"fields": [*fields, fields[0] | {"name": "x"}]}))
    start = time.process_time()
    for _ in range(1000):
        assert not avro.incompatibilities(newer, older)
    assert time.process_time() - start < 10


def _named(part: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "R"} | part


def _accepted_elsewhere(document: str) -> bool:
    try:
        check("avro", "full", document, document)
    except Refused:
        return False
    return True


def _at(document: Any, pointer: str | None) -> Any:
    for token in (pointer or "").split("/")[1:]:
        token = token.replace("~1", "/").replace("~0", "~")
        document = document[int(token)] if isinstance(document, list) else document[token]
    return document


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
