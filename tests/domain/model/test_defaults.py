"""Which values equal the defaults of the model."""

from __future__ import annotations

from typing import Any

import pytest

from annals.domain.model.compile import compile_model
from annals.domain.model.defaults import assumed_defaults, has_defaults

NUMBER = {"type": "integer", "required": True, "default": 3}
ATTRIBUTES: dict[str, Any] = {
    "level": NUMBER,
    "kind": {"type": "string", "ifvalues": {"Big": {"siblingattributes": {"size": NUMBER}}}},
    "box": {
        "type": "object",
        "attributes": {"level": NUMBER, "*": {"type": "object", "attributes": {"level": NUMBER}}},
    },
    "map": {"type": "map", "item": {"type": "object", "attributes": {"level": NUMBER}}},
    "list": {"type": "array", "item": {"type": "object", "attributes": {"level": NUMBER}}},
}
LEVEL = compile_model({"groups": {"dirs": {"singular": "dir", "attributes": ATTRIBUTES}}}).groups["dirs"].level


@pytest.mark.parametrize(
    ("values", "marks"),
    [
        ({"level": 3}, {"level": True}),
        ({"level": 4}, {}),
        ({"level": 3, "size": 3, "kind": "big"}, {"level": True, "size": True}),
        ({"box": {"level": 3}}, {"box": {"level": True}}),
        ({"box": {"level": 2, "x": {"level": 3}}}, {"box": {"x": {"level": True}}}),
        ({"map": {"a": {"level": 3}, "b": {"level": 1}}}, {"map": {"a": {"level": True}}}),
        ({"list": [{"level": 3}]}, {}),
        ({}, {}),
    ],
)
def test_values_that_equal_their_defaults_are_marked(values: dict[str, Any], marks: dict[str, Any]) -> None:
    # MS-16: at every depth, except inside arrays, which are compared as a whole
    assert LEVEL.assumed_defaults(values) == marks


def test_definitions_without_defaults_are_known() -> None:
    assert has_defaults(LEVEL.definitions)
    assert not has_defaults({"name": {"type": "string"}})
    assert assumed_defaults({"name": {"type": "string"}}, {"name": "n", "other": 1}) == {}
