"""Entities with more values than the index holds: one index row each, and the same results as from their JSON."""

from __future__ import annotations

from typing import Any

import pytest

from annals.domain.filters import PathScope, Sort, parse_filter
from annals.projections.entities.id_keys import tree_key_of
from annals.projections.entities.leaves import MAX_LEAVES, OMITTED_PATH
from annals.projections.entities.rebuild import rebuild
from annals.projections.entities.verify.verify_index import verify_index
from tests.projections.entities.test_filters import MODEL
from tests.support.registries.recorded import Registry

MANY = 300_000


def leaves_of(registry: Registry) -> dict[str, int]:
    """The number of leaves that the index has of each entity; -1 for an entity that it omits."""
    found: dict[str, int] = {}
    for type, path, _, id_key in registry.tables()[2]:
        key = tree_key_of(type, id_key)
        found[key] = -1 if path == OMITTED_PATH else found.get(key, 0) + 1
    return found


def dirs(registry: Registry, expression: str, sort: Sort | None = None) -> list[str]:
    """The ids of the Groups that an expression selects, by the index."""
    filter = parse_filter([[expression]], PathScope("dirs"), MODEL) if expression else None
    with registry.readers.view() as view:
        members = view.members(view.selection("/dirs", filter, "http://h"), "dirs", sort, 0)
        return [row.id for row in members.rows(members.page_keys())]


def test_a_large_array_is_one_row_of_the_index(registry: Registry) -> None:
    # FLAG-10 to 13, 51: what a filter finds does not depend on how many values an entity has
    small: dict[str, Any] = {"dirid": "small", "size": 2, "tags": [MANY - 1]}
    large: dict[str, Any] = {"dirid": "large", "size": 1, "tags": [*range(MANY)]}
    registry.record(("/dirs/large", large), ("/dirs/small", small))
    registry.record(("/dirs/large", {**large, "name": "n"}))
    assert leaves_of(registry) == {"!dirs!large": -1, "!dirs!small": 3}
    assert dirs(registry, "") == ["large", "small"]
    assert dirs(registry, f"tags[*]={MANY - 1}") == ["large", "small"]
    assert dirs(registry, "tags[7]=7") == ["large"]
    assert dirs(registry, "tags[7]=null") == ["small"]
    assert dirs(registry, "", Sort(("size",), descending=True)) == ["small", "large"]
    assert dirs(registry, "", Sort(("name",))) == ["small", "large"]
    assert list(verify_index(registry.store)) == []
    registry.record(("/dirs/large", None))
    assert leaves_of(registry) == {"!dirs!small": 3}


@pytest.mark.parametrize("count", [MAX_LEAVES, MAX_LEAVES + 1])
def test_the_bound_is_exact(registry: Registry, count: int) -> None:
    registry.record(("/dirs/d", {f"k{number}": number for number in range(count)}))
    assert leaves_of(registry) == {"!dirs!d": count if count <= MAX_LEAVES else -1}


def test_entities_come_and_go_across_the_bound(store_url: str) -> None:
    # FLAG-10: the index agrees with the rows, whatever an entity had before
    few, many = {"dirid": "d", "name": "a"}, {"dirid": "d", "labels": {"a": "b", "c": "d", "e": "f"}}
    with Registry(store_url, 3) as registry:
        for attributes, count in ((few, 2), (many, -1), ({**many, "name": "b"}, -1), (few, 2)):
            registry.record(("/dirs/d", attributes))
            assert leaves_of(registry) == {"!dirs!d": count}
            assert list(verify_index(registry.store)) == []


def test_another_bound_holds_from_the_next_write_on(store_url: str) -> None:
    # FLAG-10: rows that were written under another bound are found and replaced like all others
    attributes = {"dirid": "d", "labels": {"a": "b", "c": "d", "e": "f"}}
    with Registry(store_url, 3) as narrow, Registry(store_url) as wide:
        wide.history = narrow.history
        narrow.record(("/dirs/d", attributes))
        for registry, count in ((wide, 5), (narrow, -1), (wide, 5)):
            assert list(verify_index(registry.store)) == []
            attributes = {**attributes, "name": f"n{count}"}
            registry.record(("/dirs/d", attributes))
            assert leaves_of(registry) == {"!dirs!d": count}
            assert dirs(registry, f"name=n{count}") == ["d"]
        rebuild(narrow.store, max_leaves=3)
        assert leaves_of(narrow) == {"!dirs!d": -1}
        assert list(verify_index(narrow.store)) == []
