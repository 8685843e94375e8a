"""Id keys have the order of tree keys within a type, and separate the same entities."""

from __future__ import annotations

from itertools import product

import pytest

from annals.domain.filters import depth
from annals.domain.values import xid as xids
from annals.projections.entities.id_keys import id_key, id_key_bound, owner_id_key, tree_key_of

#: Ids that equal names of types or contain punctuation, and types with the names of others.
IDS = ("a", "a-", "a.b", "a~", "b", "dirs", "files", "versions")
RESOURCES = (("dirs", "files"), ("dirs", "dirs"), ("a", "versions"))
GROUPS = [f"/{group}/{id}" for group, id in product({group for group, _ in RESOURCES}, IDS)]
FILES = [f"/{group}/{id}/{plural}/{other}" for (group, plural), id, other in product(RESOURCES, IDS, IDS)]
VERSIONS = [f"{file}/versions/{id}" for file, id in product(FILES, ("1", "versions"))]
KEYS = [*map(xids.tree_key, (*GROUPS, *FILES, *VERSIONS))]


def type_of(key: str) -> str:
    return xids.type_of(key.replace("!", "/"))


def test_an_id_key_and_its_type_are_the_tree_key() -> None:
    for key in KEYS:
        type = type_of(key)
        assert tree_key_of(type, id_key(key)) == key
        parts = key.split("!")
        for owner_depth in range(1, depth(type)):
            owner = "!".join(parts[: 2 * owner_depth + 1])
            assert owner_id_key(id_key(key), owner_depth) == id_key(owner)
    assert (id_key("!"), tree_key_of("/", "")) == ("", "!")


BOUNDS = ["!", '"', *dict.fromkeys(bound for key in KEYS[::7] for bound in (key, f"{key}!", f'{key}"'))]
COLLECTIONS = [*dict.fromkeys(f"{key.rpartition('!')[0]}{mark}" for key in KEYS[::5] for mark in ("", "!", '"'))]


@pytest.mark.parametrize("type", sorted({type_of(key) for key in KEYS}))
def test_bounds_separate_the_same_entities(type: str) -> None:
    # FLAG-10, FLAG-51: filters and pages below a path read a range of a type
    keys = [key for key in KEYS if type_of(key) == type]
    assert sorted(keys) == sorted(keys, key=id_key)
    for bound in (*BOUNDS, *COLLECTIONS):
        own = id_key_bound(type, bound)
        assert [key for key in keys if key < bound] == [key for key in keys if id_key(key) < own], bound
        assert [key for key in keys if key > bound] == [key for key in keys if id_key(key) > own], bound
