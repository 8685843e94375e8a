"""SC-39: changes of Protobuf documents, from the table and generated, compared with the verdicts of `buf breaking`.

protobuf_buf_program.yaml has a reason for each difference, by the rules of either side.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, seed, settings

from annals.domain.formats import protobuf
from annals.domain.formats.contract import InvalidDocument
from tests.domain.formats.protobuf.buf import Rules, breaking
from tests.domain.formats.protobuf.test_instances import changes
from tests.support.examples import examples

HERE: Final = Path(__file__).parent
GROUPS: Final = yaml.load((HERE / "protobuf_buf_program.yaml").read_text(), yaml.CSafeLoader)
#: Without rows with missing imports, which Buf refuses.
ROWS: Final = [
    row
    for row in yaml.load((HERE / "protobuf.yaml").read_text(), yaml.CSafeLoader)["changes"]
    if "an unknown type" not in row["name"]
]
GENERATED: Final = 150


def documents(row: dict[str, Any]) -> tuple[str, str]:
    header = f'syntax = "proto{row.get("language", 3)}"; '
    return header + row["older"], header + row["newer"]


@cache
def broken(rules: Rules) -> list[list[str]]:
    """Returns the rules of Buf that each change of the table violates."""
    trees = [[{f"f{number}.proto": text} for text in documents(row)] for number, row in enumerate(ROWS)]
    return breaking([(older, newer) for older, newer in trees], rules)


def groups(rules: Rules) -> list[dict[str, Any]]:
    return list(GROUPS["WIRE"]) + (list(GROUPS["WIRE_JSON"]) if rules == "WIRE_JSON" else [])


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("rules", ["WIRE", "WIRE_JSON"])
def test_changes_of_the_table(rules: Rules) -> None:
    # SC-39: the same verdict, or a reason in the table.
    different = {
        row["name"] for row, found in zip(ROWS, broken(rules), strict=True) if (row["allowed"] == "BF") == bool(found)
    }
    listed = {name for group in groups(rules) for name in group["rows"]}
    assert different - listed == set()
    assert rules == "WIRE_JSON" or listed == different
    assert all(group["why"] for group in groups(rules))


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("rules", ["WIRE", "WIRE_JSON"])
def test_generated_changes(rules: Rules) -> None:
    # SC-39: the table has a reason for each rule that only one of the two applies.
    pairs = generated()
    trees = [({f"f{number}.proto": older}, {f"f{number}.proto": newer}) for number, (older, newer, _) in pairs]
    reasons = {rule for group in groups(rules) for side in ("ours", "buf") for rule in group.get(side, ())}
    for (_, (older, newer, ours)), theirs in zip(pairs, breaking(trees, rules), strict=True):
        if bool(ours) != bool(theirs):
            assert {*ours, *theirs} <= reasons, (older, newer)


def generated() -> list[tuple[int, tuple[str, str, set[str]]]]:
    """Returns generated changes of documents, with the rules by which Annals refuses each in either direction."""
    found: dict[tuple[str, str], set[str]] = {}

    @seed(1)
    @settings(
        max_examples=examples(GENERATED),
        database=None,
        phases=[Phase.generate],
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(changes())
    def drawn(change: tuple[str, int, str, int]) -> None:
        older, before, newer, after = change
        try:
            old = protobuf.parse(older.encode(), f"protobuf/{before}")
            new = protobuf.parse(newer.encode(), f"protobuf/{after}")
        except InvalidDocument:
            return
        reasons = [*protobuf.incompatibilities(new, old, "reader"), *protobuf.incompatibilities(old, new, "writer")]
        found[older, newer] = {each.rule for each in reasons}

    drawn()
    assert len(found) > examples(GENERATED) / 2
    return list(enumerate((older, newer, ours) for (older, newer), ours in found.items()))


def test_rules_of_the_table_are_ours() -> None:
    # SC-39: a group of changes that Annals refuses lists the rules that refuse them.
    by_name = {row["name"]: row for row in ROWS}
    for group in GROUPS["WIRE"]:
        for name in group["rows"] if "ours" in group else ():
            row = by_name[name]
            older, newer = (
                protobuf.parse(text.encode(), f"protobuf/{row.get('language', 3)}") for text in documents(row)
            )
            reasons = [
                *protobuf.incompatibilities(newer, older, "reader"),
                *protobuf.incompatibilities(older, newer, "writer"),
            ]
            assert {each.rule for each in reasons} <= set(group["ours"]), (name, reasons)
