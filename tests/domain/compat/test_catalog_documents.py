"""Documents of message definitions: the table in catalog_documents.yaml, the limit of depth, and samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from annals.domain.compat.catalog.documents import MAX_DEPTH, DefinitionDocument, MalformedDefinition, parse_definition
from annals.domain.values.json_text import dumps
from tests.data import DEFINITIONS, read

ROWS = yaml.load(Path(__file__).with_name("catalog_documents.yaml").read_text(), yaml.CSafeLoader)


def body(row: dict[str, Any]) -> bytes:
    return row["text"].encode() if "text" in row else dumps(row["document"])


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['format']} {row['rule']}" for row in ROWS])
def test_row(row: dict[str, Any]) -> None:
    # LEG-801, LEG-802, LEG-803, LEG-806
    refused = row.get("refused")
    if refused is not None:
        with pytest.raises(MalformedDefinition) as raised:
            parse_definition(row["format"], body(row))
        assert raised.value.pointer == refused
        return
    found = parse_definition(row["format"], body(row))
    expected = row.get("is") or {"document": found.document if "text" in row else row["document"], "description": None}
    assert found == DefinitionDocument(row["format"], **expected)


@pytest.mark.parametrize("format", ["CloudEvents", "NATS"])
def test_depth(format: str) -> None:
    # LEG-1107: objects and arrays are 200 deep at most
    def deep(levels: int) -> bytes:
        inside = b'{"a":' * (levels - 2) + b"1" + b"}" * (levels - 2)
        return b'{"attributes":{"type":"t","x":' + inside + b"}}"

    with pytest.raises(MalformedDefinition) as raised:
        parse_definition(format, deep(MAX_DEPTH + 1))
    assert str(raised.value) == "objects and arrays nest more than 200 deep"
    with pytest.raises(MalformedDefinition, match="too deep"):
        parse_definition(format, b"[" * 100_000)
    if format == "NATS":
        assert parse_definition(format, deep(MAX_DEPTH)).document
    else:
        with pytest.raises(MalformedDefinition, match="/attributes/x"):
            parse_definition(format, deep(MAX_DEPTH))


@pytest.mark.parametrize("format", DEFINITIONS)
def test_samples(format: str) -> None:
    # LEG-801: realistic documents are accepted
    found, given = parse_definition(format, DEFINITIONS[format].read_bytes()), read(DEFINITIONS[format])
    about = ("id", "description", "format", "version")
    assert found.document == {name: value for name, value in given.items() if name not in about}
    assert found.description == given["description"]
