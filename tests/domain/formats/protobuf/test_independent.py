"""SC-39: the changes of protobuf.yaml, compared with other implementations.

One is the checker of another registry; protobuf_apicurio.yaml has the differences. The other are the rules that Buf
publishes, in protobuf_buf.yaml.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.domain.formats.independent import Mode, check

pytestmark = pytest.mark.uses("Java")

HERE = Path(__file__).parent
CHANGES = yaml.load((HERE / "protobuf.yaml").read_text(), yaml.CSafeLoader)["changes"]
DEVIATIONS = yaml.load((HERE / "protobuf_apicurio.yaml").read_text(), yaml.CSafeLoader)
THEIRS = {name: allowed for group in DEVIATIONS for name, allowed in group["rows"].items()}
BUF = yaml.load((HERE / "protobuf_buf.yaml").read_text(), yaml.CSafeLoader)
MODES: dict[Mode, str] = {"backward": "B", "forward": "F"}


@pytest.mark.parametrize("row", CHANGES, ids=lambda row: row["name"])
def test_another_registry_agrees_or_is_listed(row: dict[str, Any]) -> None:
    header = f'syntax = "proto{row.get("language", 3)}"; '
    allowed = "".join(
        letter
        for mode, letter in MODES.items()
        if check("protobuf", mode, header + row["older"], header + row["newer"]).compatible
    )
    assert allowed == THEIRS.get(row["name"], row["allowed"])


def test_each_deviation_is_one_and_has_its_reason() -> None:
    rows = {row["name"]: row["allowed"] for row in CHANGES}
    assert sum(len(group["rows"]) for group in DEVIATIONS) == len(THEIRS)
    for name, allowed in THEIRS.items():
        assert rows[name] != allowed
    assert all(group["why"] for group in DEVIATIONS)


@pytest.mark.parametrize("rule", BUF)
def test_what_buf_refuses_is_refused_or_has_its_reason(rule: str) -> None:
    rows = {row["name"]: row["allowed"] for row in CHANGES}
    assert {name: rows[name] for name in BUF[rule].get("refused", ()) if rows[name] == "BF"} == {}
    assert {name: rows[name] for name in BUF[rule].get("allowed", ()) if rows[name] != "BF"} == {}
    assert BUF[rule].get("refused") or BUF[rule].get("why")
    assert ("allowed" in BUF[rule]) == ("why" in BUF[rule])
