"""Each change in the table has two verdicts: one of Confluent's API, one of the xRegistry API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from annals.domain import formats
from annals.domain.confluent.schema_types import common_format
from annals.domain.confluent.texts.contract import schema_texts

ROWS = yaml.safe_load(Path(__file__).with_name("verdicts.yaml").read_text())


def text_of(row: dict[str, Any], name: str) -> bytes:
    is_protobuf = row["type"] == "PROTOBUF"
    release = f'edition = "{row["edition"]}"' if "edition" in row else f'syntax = "{row.get("syntax", "proto3")}"'
    syntax = f"{release}; " if is_protobuf else ""
    return f"{syntax}{row[name]}".encode()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['type']} {row['change']}")
def test_verdicts(row: dict[str, Any]) -> None:
    # CSR-805, CSR-806, CSR-809
    texts = schema_texts(row["type"])
    old, new = (texts.parse(text_of(row, name), {}) for name in ("old", "new"))

    def verdict(is_lenient: bool) -> str:
        is_backward, is_forward = (
            not texts.differences(reader, writer, is_lenient) for reader, writer in ((new, old), (old, new))
        )
        return "B" * is_backward + "F" * is_forward

    assert verdict(False) == row["here"]
    if "lenient" in row:
        assert verdict(True) == row["lenient"]
    if row["registry"] is not None:
        name = common_format(None, row["type"], texts.declared_format(new))
        found = formats.find_format(name)
        assert found is not None
        module = found.load()
        before, after = (module.parse(text_of(row, side), name) for side in ("old", "new"))
        registry = "B" * (not module.incompatibilities(after, before, "reader"))
        assert registry + "F" * (not module.incompatibilities(before, after, "writer")) == row["registry"]
