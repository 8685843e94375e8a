"""Changes between two documents, by format (`changes.yaml`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from annals.domain import formats
from annals.domain.formats.changes import compare
from annals.domain.formats.changes.compare import MAX_CHANGES, compare_documents
from annals.domain.formats.changes.schema_change import DocumentChanges

ROWS = yaml.load(Path(__file__).with_name("changes.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)


def compared(format: str, left: str, right: str) -> DocumentChanges:
    """Returns the changes between two texts."""
    format_module = formats.find_format(format)
    assert format_module is not None
    module = format_module.load()
    return compare_documents(format, module.parse(left.encode(), format), module.parse(right.encode(), format))


def row_of(members: dict[str, Any]) -> list[Any]:
    """Returns a change in the form of the table's rows."""
    places = [next(iter((members[side] or {}).values()), None) for side in ("left", "right")]
    rules = [members[direction].get("rule", "") for direction in ("backward", "forward")]
    return [members["change"], members["path"], *places, members["before"], members["after"], *rules]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"].replace(" ", "-"))
def test_changes(row: dict[str, Any]) -> None:
    # UI-92, UI-93
    found = compared(row["format"], row["left"], row["right"])
    assert [row_of(change.members()) for change in found.changes] == row["changes"]
    assert found.is_complete


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"].replace(" ", "-"))
def test_equal_documents_have_no_changes(row: dict[str, Any]) -> None:
    found = compared(row["format"], row["left"], row["left"])
    assert not found.changes and all(found.levels.values())


def test_each_format_has_a_row() -> None:
    assert {formats.find_format(row["format"]) for row in ROWS} == set(formats.FORMAT_MODULES)


def test_all_changes_have_their_verdicts_beyond_what_a_refusal_reports() -> None:
    # a compatibility check reports a limited number of reasons; a comparison has to mark all incompatible changes
    fields = [{"name": f"f{number}", "type": "int"} for number in range(100)]
    found = compared("Avro/1.11", record([]), record(fields))
    assert [change.backward is not None for change in found.changes] == [True] * 100
    assert found.is_complete and found.forward


def test_more_changes_than_a_response_contains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "MAX_CHANGES", 5)
    found = compared("Avro/1.11", record([]), record([{"name": f"f{at}", "type": "int"} for at in range(6)]))
    assert (len(found.changes), found.is_complete, found.backward) == (5, False, False)
    assert MAX_CHANGES > 1_000


def record(fields: list[Any]) -> str:
    """Returns an Avro record as JSON."""
    return json.dumps({"type": "record", "name": "R", "fields": fields})
