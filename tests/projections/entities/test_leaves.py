"""Leaves: paths, folding and the order of keys."""

from __future__ import annotations

from decimal import Decimal
from typing import AnyStr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals.domain.filters.comparison import NO_REMAINDER
from annals.projections.entities.leaves import PATH_LIMIT, PRESENT_LEAF, TEXT_LIMIT, leaves, path_key, text_key


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        # FLAG-12, FLAG-70: dots and digits in keys need quoted steps, arrays take indexes
        ({"labels": {"stage": "Dev"}}, {"labels.stage": ("dev", None, None)}),
        ({"labels": {"a.b": "x", "7": "y", "a-b:c@d": "z"}}, {
            "labels['a.b']": ("x", None, None), "labels['7']": ("y", None, None), "labels.a-b:c@d": ("z", None, None),
        }),
        ({"tags": ["A", {"n": 1}]}, {"tags[0]": ("a", None, None), "tags[1].n": (None, 1.0, NO_REMAINDER)}),
        ({"x": {"'*'": 1}}, {"x['''*''']": (None, 1.0, NO_REMAINDER)}),
        # FLAG-13: false is below true, numbers are no strings, timestamps are instants
        ({"on": True, "off": False}, {"on": ("true", 1.0, None), "off": ("false", 0.0, None)}),
        ({"n": 3, "d": Decimal("1.10")}, {"n": (None, 3.0, NO_REMAINDER), "d": (None, 1.1, NO_REMAINDER)}),
        ({"t": "2026-01-02T03:04:05.500Z"}, {"t": ("2026-01-02t03:04:05.5!", None, None)}),
        # FLAG-12: an empty container is present, a null is absent
        ({"labels": {}, "tags": [], "x": {"y": None}}, dict.fromkeys(("labels", "tags", "x"), PRESENT_LEAF)),
        ({"gone": None}, {}),
        ({"huge": Decimal("1e999"), "low": Decimal("-1e400")}, {
            "huge": (None, float("inf"), "220000000000000009991"),
            "low": (None, float("-inf"), "079999999999999995998~"),
        }),
    ],
)  # fmt: skip
def test_leaves(attributes: dict[str, object], expected: dict[str, object]) -> None:
    assert leaves(attributes) == expected


# FLAG-13: timestamps compare as instants, whatever their number of fraction digits
def test_timestamps_sort_by_instant() -> None:
    instants = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.05Z", "2026-01-01T00:00:00.5Z", "2026-01-01T00:00:01Z"]
    assert sorted(instants, key=text_key) == instants
    assert text_key("2026-01-01T00:00:00.000Z") == text_key(instants[0])


# FLAG-13: text keys order as the case-folded texts do, NUL included, in the bytes that both databases compare
@given(st.text(max_size=30), st.text(max_size=30))
def test_text_keys_keep_order(one: str, other: str) -> None:
    def sign(left: AnyStr, right: AnyStr) -> int:
        return (left > right) - (left < right)

    keys = text_key(one).encode(), text_key(other).encode()
    assert sign(*keys) == sign(one.casefold(), other.casefold())
    assert b"\0" not in keys[0]


def test_long_values_are_cut() -> None:
    assert leaves({"a": "x" * 5000})["a"] == ("x" * TEXT_LIMIT, None, None)
    (path,) = leaves({"a" * 60: {"b" * 300: 1}})
    assert path == path_key("a" * 60 + "." + "b" * 300)
    assert len(path) == PATH_LIMIT
    assert path != path_key("a" * 60 + "." + "b" * 299 + "c")
