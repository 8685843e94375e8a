"""What differs between two images of an entity, attribute by attribute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal

from domain import dotpath
from domain.events import EntityDeleted, EntityEvent
from domain.jsontext import dumps

#: What became of an entity between two moments.
Change = Literal["created", "deleted", "changed"]


class Absent(Enum):
    """The value of an attribute that is not there, which null is not."""

    ABSENT = ""


ABSENT: Final = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class Value:
    """An attribute that differs. path: in dot notation. before, after: JSON values, or `ABSENT`."""

    path: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Difference:
    """What became of one entity: its attributes that differ, and the SHA-256 of its document before and after."""

    xid: str
    type: str
    change: Change
    values: tuple[Value, ...]
    documents: tuple[str | None, str | None]


def differences(before: EntityEvent | None, after: EntityEvent | None) -> Iterator[Difference]:
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


def differing(before: Any, after: Any, steps: tuple[str, ...] = ()) -> Iterator[Value]:
    """The values that differ between two JSON values, sorted by name within each object.

    Objects are gone into where there are two of them; an array counts as one value, because what moved in it, and what
    was put in, cannot be told apart.
    """
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        if not _same(before, after):
            yield Value(dotpath.text(steps), before, after)
        return
    for name in sorted(before.keys() | after.keys()):
        yield from differing(before.get(name, ABSENT), after.get(name, ABSENT), (*steps, name))


def alive(event: EntityEvent | None) -> EntityEvent | None:
    """The event, if it left its entity alive."""
    return None if isinstance(event, EntityDeleted) else event


def _difference(
    change: Change, named: EntityEvent, before: EntityEvent | None, after: EntityEvent | None
) -> Difference:
    values = differing(before.attributes if before else {}, after.attributes if after else {})
    return Difference(named.xid, named.type, change, tuple(values), (_document(before), _document(after)))


def _document(event: EntityEvent | None) -> str | None:
    return event.private.get("document") if event else None


def _same(one: Any, other: Any) -> bool:
    """Whether two values are the same text: 1 is neither 1.0 nor true."""
    if one is ABSENT or other is ABSENT:
        return one is other
    return bool(one == other) and dumps(one) == dumps(other)
