"""Traps of the specification about decisions and models, each with its id."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from annals.domain.errors.problems import Problem
from annals.domain.model import compile_model
from annals.domain.model.builtin import default_source
from annals.domain.values.xid import ID
from tests.support.registries.memory import MemoryRegistry


def model(default: str) -> dict[str, Any]:
    color = {"type": "string", "required": True, "default": default}
    size = {"type": "object", "attributes": {"unit": {**color, "readonly": True}}}
    return {"groups": {"dirs": {"singular": "dir", "attributes": {"color": color, "size": size}}}}


def test_a_new_default_leaves_stored_values_alone() -> None:
    # MOD-11: the new default applies to new instances and to values that are reset; nested read-only values stay too
    made = MemoryRegistry(model("red"))
    made.put("/dirs/d1", {"size": {}})
    made.model(model("blue"))
    made.patch("/dirs/d1", {"name": "n"})
    stored = made.get("/dirs/d1").attributes
    assert (stored["color"], stored["size"]) == ("red", {"unit": "red"})
    made.put("/dirs/d2", {})
    made.patch("/dirs/d1", {"color": None})
    assert made.get("/dirs/d2").attributes["color"] == made.get("/dirs/d1").attributes["color"] == "blue"


def test_lower_case_is_folded_case_for_ids() -> None:
    # TRAP-4: ids are ASCII, so lower() and casefold() give the same result
    allowed = [character for character in map(chr, range(0x3000)) if ID.match("a" + character)]
    assert set(allowed) == set(string.ascii_letters + string.digits + "._~:@-")
    assert all(character.lower() == character.casefold() for character in allowed)


def test_built_in_models_avoid_underscores_in_what_becomes_a_header() -> None:
    # HTTP-50: proxies drop header names with `_`
    groups = compile_model(default_source()).full["groups"]
    names = [name for group in groups.values() for type in group["resources"].values() for name in _names(type)]
    assert names
    assert not [name for name in names if "_" in name]


def test_proxy_urls_are_no_attribute() -> None:
    # ENT-127: `fileproxyurl` is an extension of another server; it is an unknown attribute here
    made = MemoryRegistry({"groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file"}}}}})
    with pytest.raises(Problem) as problem:
        made.put("/dirs/d1/files/f1", {"fileproxyurl": "https://x.example/f"})
    assert problem.value.name == "unknown_attribute"


def _names(type: Mapping[str, Any]) -> Iterator[str]:
    yield from type["attributes"]
