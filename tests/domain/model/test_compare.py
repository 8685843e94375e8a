"""The types that differ between two models."""

from __future__ import annotations

from typing import Any

import pytest

from annals.domain.model import compile_model
from annals.domain.model.compare import changed_types

FILES: dict[str, Any] = {"singular": "file", "attributes": {"a": {"type": "string"}}}
DESCRIBED = {"attributes": {"a": {"type": "string", "description": "x"}}}
DIRS: dict[str, Any] = {"singular": "dir", "resources": {"files": FILES}}
BASE = compile_model({"groups": {"dirs": DIRS}})


@pytest.mark.parametrize(
    ("source", "types"),
    [
        ({"groups": {"dirs": DIRS}}, set()),
        ({"description": "new", "groups": {"dirs": DIRS | {"icon": "http://x.y/z"}}}, set()),
        ({"groups": {"dirs": DIRS | {"resources": {"files": FILES | DESCRIBED}}}}, set()),
        ({"attributes": {"x": {"type": "any"}}, "groups": {"dirs": DIRS}}, {"/"}),
        ({"groups": {"dirs": DIRS | {"attributes": {"x": {"type": "any"}}}}}, {"dirs"}),
        ({"groups": {"dirs": DIRS | {"resources": {"files": FILES | {"maxversions": 1}}}}}, {"dirs.files"}),
        ({"groups": {"dirs": DIRS | {"constraints": {"files.a": {"enum": ["x"]}}}}}, {"dirs", "dirs.files"}),
        ({}, {"/", "dirs", "dirs.files"}),
    ],
)
def test_changed_types(source: dict[str, Any], types: set[str]) -> None:
    # MOD-93: the types whose entities have to be checked against the new model; descriptions and icons do not count
    assert changed_types(BASE, compile_model(source)) == types


def test_how_a_definition_gets_there_does_not_matter() -> None:
    # MOD-75: an included definition equals a local one
    local, included = DIRS | {"singular": "box"}, {"$include": "#/groups/dirs", "singular": "box"}
    models = [compile_model({"groups": {"dirs": DIRS, "boxes": boxes}}) for boxes in (local, included)]
    assert changed_types(*models) == set()
