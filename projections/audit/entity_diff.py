"""The difference between two images of an entity, attribute by attribute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from annals.domain.confluent.schema_versions import schema_version
from annals.domain.registry.events import EntityDeleted, EntityEvent
from annals.domain.values import dot_path
from annals.domain.values.json_text import dumps

#: The kind of change of an entity between two moments.
ChangeKind = Literal["created", "deleted", "changed"]


class AbsentValue(Enum):
    """The value of a missing attribute, which is different from null."""

    ABSENT = ""


ABSENT: Final = AbsentValue.ABSENT


class AttributeDiff(NamedTuple):
    """An attribute that differs. path: in dot notation. before, after: JSON values, or `ABSENT`."""

    path: str
    before: Any
    after: Any


class SchemaIdentity(NamedTuple):
    """What a Version is to Confluent's API. subject: without its context, for which the Group stands."""

    subject: str
    version: int
    id: int


@dataclass(frozen=True, slots=True)
class EntityDiff:
    """The changes of one entity: attributes that differ, and before and after, the SHA-256 of its document and what it
    is to Confluent's API, None if nothing."""

    xid: str
    type: str
    change: ChangeKind
    values: tuple[AttributeDiff, ...]
    documents: tuple[str | None, str | None]
    schemas: tuple[SchemaIdentity | None, SchemaIdentity | None]


def diff_entity(before: EntityEvent | None, after: EntityEvent | None) -> Iterator[EntityDiff]:
    """The changes of a stream's entity between two moments; nothing if no reader can see any.

    before, after: None where the entity is not live. An entity that was re-created with another spelling of its id
    counts as another entity.
    """
    if before and after and before.xid == after.xid:
        diff = _entity_diff("changed", after, before, after)
        if diff.values or diff.documents[0] != diff.documents[1] or diff.schemas[0] != diff.schemas[1]:
            yield diff
        return
    if before:
        yield _entity_diff("deleted", before, before, None)
    if after:
        yield _entity_diff("created", after, None, after)


def diff_values(before: Any, after: Any, steps: tuple[str, ...] = ()) -> Iterator[AttributeDiff]:
    """The differences between two JSON values, sorted by name within each object.

    Two objects are compared member by member. An array counts as one value, because moved and inserted items cannot be
    distinguished.
    """
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        if not _is_same_json(before, after):
            yield AttributeDiff(_path_text(steps), before, after)
        return
    for name in sorted(before.keys() | after.keys()):
        if name not in before:
            yield AttributeDiff(_path_text((*steps, name)), ABSENT, after[name])
        elif name not in after:
            yield AttributeDiff(_path_text((*steps, name)), before[name], ABSENT)
        else:
            yield from diff_values(before[name], after[name], (*steps, name))


def unless_deleted(event: EntityEvent | None) -> EntityEvent | None:
    """The event, unless it deleted its entity."""
    return None if isinstance(event, EntityDeleted) else event


@lru_cache(maxsize=1 << 12)
def _path_text(steps: tuple[str, ...]) -> str:
    # Thousands of entities have the same attributes.
    return dot_path.text(steps)


def _entity_diff(
    change: ChangeKind, identity: EntityEvent, before: EntityEvent | None, after: EntityEvent | None
) -> EntityDiff:
    values = diff_values(before.attributes if before else {}, after.attributes if after else {})
    return EntityDiff(
        identity.xid,
        identity.type,
        change,
        tuple(values),
        (_document_hash(before), _document_hash(after)),
        (_schema_identity(before), _schema_identity(after)),
    )


def _document_hash(event: EntityEvent | None) -> str | None:
    return event.private.get("document") if event else None


def _schema_identity(event: EntityEvent | None) -> SchemaIdentity | None:
    version = schema_version(event, 0) if event is not None else None
    return SchemaIdentity(version.subject, version.number, version.id) if version is not None else None


def _is_same_json(first: Any, second: Any) -> bool:
    """Whether two values have the same JSON text: 1 equals neither 1.0 nor true."""
    if first is ABSENT or second is ABSENT:
        return first is second
    return bool(first == second) and dumps(first) == dumps(second)
