"""What differs between two images of an entity, attribute by attribute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal

from domain.registry.events import EntityDeleted, EntityEvent
from domain.values import dot_path
from domain.values.json_text import dumps

#: What became of an entity between two moments.
ChangeKind = Literal["created", "deleted", "changed"]


class AbsentValue(Enum):
    """The value of an attribute that is not there, which null is not."""

    ABSENT = ""


ABSENT: Final = AbsentValue.ABSENT


@dataclass(frozen=True, slots=True)
class AttributeDiff:
    """An attribute that differs. path: in dot notation. before, after: JSON values, or `ABSENT`."""

    path: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class EntityDiff:
    """What became of one entity: its attributes that differ, and the SHA-256 of its document before and after."""

    xid: str
    type: str
    change: ChangeKind
    values: tuple[AttributeDiff, ...]
    documents: tuple[str | None, str | None]


def diff_entity(before: EntityEvent | None, after: EntityEvent | None) -> Iterator[EntityDiff]:
    """What became of the entity of a stream, None where it does not live; nothing if no reader can tell.

    An entity that came back under another spelling of its id is another one.
    """
    if before and after and before.xid == after.xid:
        found = _difference("changed", after, before, after)
        if found.values or found.documents[0] != found.documents[1]:
            yield found
        return
    if before:
        yield _difference("deleted", before, before, None)
    if after:
        yield _difference("created", after, None, after)


def diff_values(before: Any, after: Any, steps: tuple[str, ...] = ()) -> Iterator[AttributeDiff]:
    """The values that differ between two JSON values, sorted by name within each object.

    Objects are gone into where there are two of them; an array counts as one value, because what moved in it, and what
    was put in, cannot be told apart.
    """
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        if not _same(before, after):
            yield AttributeDiff(dot_path.text(steps), before, after)
        return
    for name in sorted(before.keys() | after.keys()):
        yield from diff_values(before.get(name, ABSENT), after.get(name, ABSENT), (*steps, name))


def unless_deleted(event: EntityEvent | None) -> EntityEvent | None:
    """The event, if it left its entity alive."""
    return None if isinstance(event, EntityDeleted) else event


def _difference(
    change: ChangeKind, named: EntityEvent, before: EntityEvent | None, after: EntityEvent | None
) -> EntityDiff:
    values = diff_values(before.attributes if before else {}, after.attributes if after else {})
    return EntityDiff(named.xid, named.type, change, tuple(values), (_document(before), _document(after)))


def _document(event: EntityEvent | None) -> str | None:
    return event.private.get("document") if event else None


def _same(one: Any, other: Any) -> bool:
    """Whether two values are the same text: 1 is neither 1.0 nor true."""
    if one is ABSENT or other is ABSENT:
        return one is other
    return bool(one == other) and dumps(one) == dumps(other)
