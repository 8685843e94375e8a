"""Constraints of single Groups."""

from __future__ import annotations

from typing import Any

import pytest

from annals.domain.errors.problems import InvalidAttribute
from annals.domain.model import compile_model
from annals.domain.model.group_constraints import group_constraints

GROUP = compile_model(
    {
        "groups": {
            "dirs": {
                "singular": "dir",
                "attributes": {"x": {"type": "string"}, "y": {"type": "string"}},
                "constraints": {"files.a": {"enum": ["p", "q"], "equals": "x"}},
                "resources": {
                    "files": {"singular": "file", "attributes": {"a": {"type": "string"}, "b": {"type": "integer"}}}
                },
            }
        }
    }
).groups["dirs"]


def test_a_group_inherits_what_it_does_not_say() -> None:
    # ENT-155: absent constraints and absent aspects are inherited from the type
    inherited = {("files", "a"): {"enum": ["p", "q"], "equals": "x"}}
    assert group_constraints(GROUP, None, "/dirs/d") == inherited
    assert group_constraints(GROUP, {"files.a": {}}, "/dirs/d") == inherited


def test_a_group_narrows_and_adds() -> None:
    # ENT-155: a smaller enum, a default inside it, a constraint of its own
    given = {"files.a": {"enum": ["p"], "default": "p"}, "files.b": {"enum": [1]}}
    assert group_constraints(GROUP, given, "/dirs/d") == {
        ("files", "a"): {"enum": ["p"], "default": "p", "equals": "x"},
        ("files", "b"): {"enum": [1]},
    }


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"files.a": {"enum": ["p", "r"]}}, "constraints['files.a'].enum"),
        ({"files.a": {"equals": "y"}}, "constraints['files.a'].equals"),
        ({"files.a": {"default": "r"}}, "constraints['files.a'].default"),
        ({"files.b": {"enum": ["1"]}}, "constraints['files.b'].enum[0]"),
        ({"files.c": {"enum": ["1"]}}, "constraints['files.c']"),
        ({"files": {"enum": ["1"]}}, "constraints.files"),
        ({"docs.a": {"enum": ["1"]}}, "constraints['docs.a']"),
    ],
)
def test_a_group_widens_nothing(given: dict[str, Any], name: str) -> None:
    # ENT-155: the rules for constraints in the model (MOD-60 to 63) hold, and so do the constraints of the type
    with pytest.raises(InvalidAttribute) as caught:
        group_constraints(GROUP, given, "/dirs/d")
    assert caught.value.arguments["name"] == name
