"""Which definitions a message matches (the table in matching.yaml), and values that are refused as messages."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml

from annals.domain.messaging.match import match_message
from annals.domain.messaging.message_parts import parse_message

ROWS = yaml.load(Path(__file__).with_name("matching.yaml").read_text(), yaml.CSafeLoader)
EVENT = {"specversion": "1.0", "id": "1", "source": "/"}


@pytest.mark.parametrize("row", ROWS, ids=[row["rule"] for row in ROWS])
def test_row(row: dict[str, Any]) -> None:
    # MS-50, MS-51, MS-52
    given = {**EVENT, **row["ce"], "data": {"any": None}} if "ce" in row else row["parts"]
    found = match_message(row["definition"], parse_message(given))
    match = None if found is None else {**asdict(found), "parts": list(found.parts)}
    assert match == row["match"]


@pytest.mark.parametrize(
    "value",
    [
        *([], "text", None, {}, {"x": 1}, {"envelopemetadata": {}}, {"envelope": 1}, {"protocol": ["NATS"]}),
        {"specversion": 1.0, "type": "x"},
        {"specversion": "1.0", "type": {"a": 1}},
        {"protocol": "HTTP", "protocoloptions": []},
        {"protocol": "HTTP", "protocoloptions": {"headers": ["a"]}},
        {"protocol": "HTTP", "protocoloptions": {"headers": [{"value": "a"}]}},
        {"protocol": "HTTP", "protocoloptions": {"headers": {"a": {"b": 1}}}},
        {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": ["x"]}},
    ],
)
def test_what_is_no_message_is_refused(value: Any) -> None:
    with pytest.raises(ValueError):
        parse_message(value)


def test_attributes_that_are_null_are_absent() -> None:
    declared = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"subject": {"required": True}}}
    assert match_message(declared, parse_message({**EVENT, "type": "x", "subject": None})) is None
