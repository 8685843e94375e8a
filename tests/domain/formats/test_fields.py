"""The fields of schemas, by format (`fields.yaml`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from annals.domain import formats
from annals.domain.formats.fields import MAX_DEPTH, MAX_FIELDS, schema_fields

_ROWS = yaml.load(Path(__file__).with_name("fields.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)


def fields_of(format: str, document: str) -> list[Any]:
    """Returns the fields of a document."""
    format_module = formats.find_format(format)
    assert format_module is not None
    return list(schema_fields(format, format_module.load().parse(document.encode(), format)))


@pytest.mark.parametrize("row", _ROWS, ids=lambda row: row["name"].replace(" ", "-"))
def test_fields(row: dict[str, Any]) -> None:
    found = fields_of(row["format"], row["document"])
    assert [[field.path, field.type, field.optional, field.doc] for field in found] == row["fields"]
    assert all(field.path.endswith(field.name) for field in found)


def test_each_format_has_fields() -> None:
    covered = {formats.find_format(row["format"]) for row in _ROWS}
    assert covered == set(formats.FORMAT_MODULES)


def test_large_and_deep_documents_are_cut() -> None:
    # a stored document must not use up memory when another client reads it
    wide = json.dumps({"properties": {f"p{number}": {} for number in range(MAX_FIELDS + 5)}})
    assert len(fields_of("JsonSchema/draft-07", wide)) == MAX_FIELDS
    deep: dict[str, Any] = {}
    for _ in range(MAX_DEPTH + 20):
        deep = {"properties": {"p": deep}}
    assert MAX_DEPTH <= len(fields_of("JsonSchema/draft-07", json.dumps(deep))) < MAX_DEPTH + 5
