"""Runs filters.yaml: filters with events that pass and events that do not, or invalid filters with the error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from annals.domain.subscriptions.filters import MAX_DEPTH, MAX_FILTERS, FilterError, compile_filters
from annals.domain.subscriptions.index_conditions import IndexCondition
from annals.domain.subscriptions.subscription_index import SubscriptionIndex, SubscriptionInterest

ROWS = yaml.load(Path(__file__).with_name("filters.yaml").read_text(), yaml.CSafeLoader)
EVENT = {"specversion": "1.0", "id": "i", "source": "/s", "type": "t.one"}


def row_id(row: dict[str, Any]) -> str:
    return f"{row['rule']} {row['says']}"


@pytest.mark.parametrize("row", [row for row in ROWS if "refused" not in row], ids=row_id)
def test_filters(row: dict[str, Any]) -> None:
    compiled = compile_filters(row["filters"])
    index = SubscriptionIndex[str]()
    index.put("it", SubscriptionInterest(compiled))
    for passes, events in ((True, row.get("passes", [])), (False, row.get("stops", []))):
        for event in events:
            whole = {**EVENT, **event}
            assert compiled.matches(whole) is passes, event
            assert index.matches(whole) == ["it"] * passes, event


@pytest.mark.parametrize("row", [row for row in ROWS if "refused" in row], ids=row_id)
def test_refused(row: dict[str, Any]) -> None:
    pointer, reason = row["refused"]
    with pytest.raises(FilterError) as caught:
        compile_filters(row["filters"])
    assert caught.value.pointer == pointer
    assert reason in caught.value.reason
    assert str(caught.value) == f"{pointer}: {caught.value.reason}"


def nested(depth: int, inner: Any) -> Any:
    for level in range(depth):
        inner = {"not": inner} if level % 2 else {"all": [inner]}
    return inner


def test_how_deep_and_how_many() -> None:
    # SUB-408: at most 32 levels and 500 filters, also with the deepest expression inside
    worst = "NOT 1 OR 1 = 1 + 1 * - 1 IN (" * 100 + "1" + ")" * 100
    for inner in ({"exact": {"type": "t.one"}}, {"sql": worst}):
        assert compile_filters([nested(MAX_DEPTH - 1, inner)]).matches(EVENT) in (True, False)
        with pytest.raises(FilterError, match="at most 32 deep") as caught:
            compile_filters([nested(MAX_DEPTH, inner)])
        assert caught.value.pointer.count("/") > MAX_DEPTH
    with pytest.raises(FilterError, match="at most 32 deep"):
        compile_filters([nested(5000, {"exact": {"type": "x"}})])
    many = [{"exact": {"type": "t.one"}}] * (MAX_FILTERS - 1)
    assert compile_filters([{"all": many}]).matches(EVENT)
    assert compile_filters([*many, many[0]]).matches(EVENT)
    for filters in ([{"all": [*many, many[0]]}], [*many, many[0], many[0]]):
        with pytest.raises(FilterError, match="at most 500 filters"):
            compile_filters(filters)


def test_the_pointer_begins_where_the_filters_stand() -> None:
    # the pointer has to be valid in the document of the request
    with pytest.raises(FilterError) as caught:
        compile_filters([{"exact": {}}], "/subscription/filters")
    assert caught.value.pointer == "/subscription/filters/0/exact"


@pytest.mark.parametrize(
    ("filters", "needs"),
    [
        ([{"exact": {"type": "t", "source": "s"}}], [("type", "t", True)]),
        ([{"exact": {"type": "t"}}, {"exact": {"subject": "s"}}], [("subject", "s", True)]),
        ([{"prefix": {"subject": "/groups/g1"}}], [("subject", "/groups/g1", False)]),
        ([{"prefix": {"subject": "/"}}, {"exact": {"type": "t"}}], [("type", "t", True)]),
        ([{"prefix": {"subject": "x" * 500}}], [("subject", "x" * 128, False)]),
        ([{"suffix": {"type": "t"}}], None),
        ([{"not": {"exact": {"type": "t"}}}], None),
        ([{"any": [{"exact": {"type": "t"}}, {"exact": {"type": "u"}}]}], [("type", "t", True), ("type", "u", True)]),
        ([{"any": [{"exact": {"type": "t"}}, {"suffix": {"type": "u"}}]}], None),
        ([{"all": [{"suffix": {"type": "u"}}, {"exact": {"type": "t"}}]}], [("type", "t", True)]),
        ([{"sql": "type = 't'"}], [("type", "t", True)]),
        ([{"sql": "'t' = type"}], None),
        ([{"sql": "type != 't'"}], None),
        ([{"sql": "number = 5"}], None),
        ([{"sql": "type LIKE 't.%'"}], [("type", "t.", False)]),
        ([{"sql": "type LIKE 't\\_x'"}], [("type", "t_x", True)]),
        ([{"sql": "type LIKE 't_x'"}], [("type", "t", False)]),
        ([{"sql": "type LIKE '%.deleted'"}], None),
        ([{"sql": "type NOT LIKE 't%'"}], None),
        ([{"sql": "type IN ('t', 'u')"}], [("type", "t", True), ("type", "u", True)]),
        ([{"sql": "type IN ('t', subject)"}], None),
        ([{"sql": "type NOT IN ('t')"}], None),
        ([{"sql": "myext IN ('t')"}], None),
        ([{"sql": "myext = 't'"}], [("myext", "t", True)]),
        ([{"sql": "type = 't' AND LENGTH(subject) > 3"}], [("type", "t", True)]),
        ([{"sql": "LENGTH(subject) > 3 AND type = 't'"}], [("type", "t", True)]),
        ([{"sql": "type = 't' OR subject = 's'"}], [("subject", "s", True), ("type", "t", True)]),
        ([{"sql": "type = 't' OR subject"}], None),
        ([{"sql": "type = 't' XOR subject = 's'"}], None),
        ([{"sql": "TRUE XOR TRUE AND type = 't'"}], [("type", "t", True)]),
        ([{"sql": "(type = 't' OR type = 'u') AND source = 's'"}], [("type", "t", True), ("type", "u", True)]),
        ([{"sql": "NOT (type = 't')"}], None),
        ([{"sql": "type = 't' = TRUE"}], None),
        ([{"sql": "type IN (" + ", ".join(f"'{n}'" for n in range(101)) + ")"}], None),
        ([], None),
    ],
)
def test_conditions(filters: Any, needs: list[tuple[str, str, bool]] | None) -> None:
    found = compile_filters(filters).conditions
    assert (None if found is None else sorted(found)) == (needs and [IndexCondition(*each) for each in needs])
