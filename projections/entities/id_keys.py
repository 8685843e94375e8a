"""Id keys: the place of an entity among those of its type.

The id key is the tree key without the names of the collections, which all entities of a type share:
`!dirs!d1!files!f1!versions!v1` is `d1!f1"v1`. It has a third of the length, and the same order within a type.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from annals.domain.filters import depth
from annals.projections.database.drivers import Database

#: What stands before the id of a Group, a Resource and a Version. All sort below every character of an id, and each
#: below the next, as `!` and `"` do in a tree key.
_SEPARATORS: Final = ("", "!", '"')
#: What sorts above an entity and all below it, and below the next entity.
AFTER_SUBTREE: Final = "#"
#: Above all id keys.
LAST_ID_KEY: Final = "\x7f"
#: What sorts above a collection and all below it, behind its owner's id key: all Groups, Resources, Versions.
_AFTER_COLLECTION: Final = (LAST_ID_KEY, '"', AFTER_SUBTREE)


def id_key(tree_key: str) -> str:
    """The id key of an entity; empty for the registry and its definitions."""
    group, *deeper_ids = tree_key[1:].split("!")[1::2] or [""]
    return group + "".join(map(str.__add__, _SEPARATORS[1:], deeper_ids))


def id_keys_of_type(tree_keys: Iterable[str], type: str) -> list[str]:
    """The id keys of those of some tree keys that belong to entities of a type."""
    return [id_key(key) for key in tree_keys if ".".join(key[1:].split("!")[::2]) == type]


def tree_key_of(type: str, key: str) -> str:
    """The tree key of an entity by its type and id key; that of the registry for an empty id key."""
    group, _, deeper_ids = key.partition("!")
    resource, _, version = deeper_ids.partition('"')
    ids = (group, resource, version)
    return "".join(f"!{name}!{id}" for name, id in zip(type.split("."), ids, strict=False)) if key else "!"


def owner_id_key(key: str, owner_depth: int) -> str:
    """The id key of the Group (`owner_depth` 1) or Resource (2) that an entity belongs to, or of the entity itself."""
    ids = key.replace('"', "!").split("!")[:owner_depth]
    return "".join(separator + id for separator, id in zip(_SEPARATORS, ids, strict=False))


def id_key_bound(type: str, bound: str) -> str:
    """The bound for id keys of a type that separates the same entities as a bound for tree keys.

    bound: a tree key or the name of a collection, or one of them followed by `!` or `"`.
    """
    if bound > "!~":  # above all tree keys
        return LAST_ID_KEY
    key, remaining = "", bound[1:]
    for level, name in enumerate(type.split(".")):
        found_name, mark, remaining = _split(remaining)
        if found_name != name or mark != "!":  # it is outside the collection
            return key + (_AFTER_COLLECTION if found_name + mark > name + "!" else _SEPARATORS)[level]
        id, mark, remaining = _split(remaining)
        key += _SEPARATORS[level] + id
        if mark != "!":
            return key + (AFTER_SUBTREE if mark else "")
    return f"{key}!"  # a bound below an entity of this type


def tree_key_expression(key: str, type: str) -> str:
    """SQL for the tree key of the entity of a type with an id key."""
    group, *deeper_names = type.split(".")
    expression = key
    for separator, name in zip(_SEPARATORS[1:], deeper_names, strict=False):
        expression = f"replace({expression}, '{separator}', '!{name}!')"
    return f"('!{group}!' || {expression})"


def group_key_expression(db: Database, key: str) -> str:
    """SQL for the tree key of the Group that an entity belongs to, or is. key: a column of tree keys."""
    id_start = f"{db.find_function}(substr({key}, 2), '!') + 2"
    return f"substr({key}, 1, {id_start} + {db.find_function}(substr({key}, {id_start}) || '!', '!') - 2)"


def owner_expression(db: Database, key: str, type: str, owner_depth: int) -> str:
    """SQL for the id key of the Group (`owner_depth` 1) or Resource (2) that an entity of a type belongs to.

    key: a column of id keys.
    """
    if owner_depth == depth(type):
        return key
    return f"substr({key}, 1, {db.find_function}({key}, '{_SEPARATORS[owner_depth]}') - 1)"


def descendants_condition(key: str, owner: str, owner_depth: int) -> str:
    """SQL for whether the entity with an id key is below the owner with another one."""
    return f"{key} > {owner} || '{_SEPARATORS[owner_depth]}' AND {key} < {owner} || '{AFTER_SUBTREE}'"


def _split(text: str) -> tuple[str, str, str]:
    """A text before its first mark (`!` or `"`), the mark, and what follows."""
    end = min((place for place in map(text.find, '!"') if place >= 0), default=len(text))
    return text[:end], text[end : end + 1], text[end + 1 :]
