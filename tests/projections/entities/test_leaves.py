"""Leaves: their paths and values."""

from __future__ import annotations

from decimal import Decimal

import pytest

from annals.projections.entities.index_values import CUT, EMPTY_VALUE, FALSE_VALUE, KEY_LIMIT, TRUE_VALUE
from annals.projections.entities.leaves import PATH_LIMIT, leaves, path_key

ONE = b"\1\xbf\xf0\0\0\0\0\0\0" + b"1"
INFINITY = b"\1\xff\xf0\0\0\0\0\0\0"


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        # FLAG-12, FLAG-70: dots and digits in keys need quoted steps, arrays take indexes
        ({"labels": {"stage": "Dev"}}, {"labels.stage": b"\3dev"}),
        ({"labels": {"a.b": "x", "7": "y", "a-b:c@d": "z"}}, {
            "labels['a.b']": b"\3x", "labels['7']": b"\3y", "labels.a-b:c@d": b"\3z",
        }),
        ({"tags": ["A", {"n": 1}]}, {"tags[0]": b"\3a", "tags[1].n": ONE}),
        ({"x": {"'*'": 1}}, {"x['''*''']": ONE}),
        # FLAG-13: false is below true, numbers are no strings, timestamps are instants
        ({"on": True, "off": False}, {"on": TRUE_VALUE, "off": FALSE_VALUE}),
        ({"n": 1, "d": Decimal("1.00")}, {"n": ONE, "d": ONE}),
        ({"t": "2026-01-02T03:04:05.500Z"}, {"t": b"\x032026-01-02t03:04:05.5!"}),
        # FLAG-12: an empty container is present, a null is absent
        ({"labels": {}, "tags": [], "x": {"y": None}}, dict.fromkeys(("labels", "tags", "x"), EMPTY_VALUE)),
        ({"gone": None}, {}),
        ({"huge": Decimal("1e999"), "low": Decimal("-1e400")}, {
            "huge": INFINITY + b"220000000000000009991",
            "low": b"\1" + bytes(255 - byte for byte in INFINITY[1:]) + b"079999999999999995998~",
        }),
    ],
)  # fmt: skip
def test_leaves(attributes: dict[str, object], expected: dict[str, object]) -> None:
    assert leaves(attributes) == expected


def test_long_values_are_cut() -> None:
    assert leaves({"a": "x" * 5000})["a"] == b"\3" + b"x" * KEY_LIMIT + CUT
    (path,) = leaves({"a" * 60: {"b" * 300: 1}})
    assert path == path_key("a" * 60 + "." + "b" * 300)
    assert len(path) == PATH_LIMIT
    assert path != path_key("a" * 60 + "." + "b" * 299 + "c")
