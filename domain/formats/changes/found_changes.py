"""Finds what changed between the elements of two documents, without verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from annals.domain.formats.changes.elements import DocumentElements, ElementKey
from annals.domain.formats.changes.json_differences import JsonComparison
from annals.domain.formats.changes.schema_change import ChangeKind, SchemaChange
from annals.domain.formats.contract import DocumentLocation
from annals.domain.formats.fields import SchemaField


def found_changes(left: DocumentElements, right: DocumentElements) -> Iterator[SchemaChange]:
    """What changed, in the order of the right document; then what was removed.

    A part of a document that several fields share changes once.
    """
    known: set[tuple[object, ...]] = set()
    for change in chain(_changed(left, right), _added(left, right), _removed(left, right)):
        key = (change.kind, change.left, change.right, change.before, change.after)
        is_json = any(place is not None and place.pointer is not None for place in (change.left, change.right))
        if not is_json or key not in known:
            known.add(key)
            yield change


def _added(left: DocumentElements, right: DocumentElements) -> Iterator[SchemaChange]:
    for key, element in right.by_key.items():
        if key not in left.by_key and not _is_property_of_new(key, right, left):
            after = _description(element)
            yield SchemaChange(ChangeKind.ADDED, element.path, element.name, None, element.location, None, after)


def _removed(left: DocumentElements, right: DocumentElements) -> Iterator[SchemaChange]:
    for key, element in left.by_key.items():
        if key not in right.by_key and not _is_property_of_new(key, left, right):
            before = _description(element)
            yield SchemaChange(ChangeKind.REMOVED, element.path, element.name, element.location, None, before)


def _changed(left: DocumentElements, right: DocumentElements) -> Iterator[SchemaChange]:
    rest = _JsonRest(left, right)
    yield from rest.changes("", "", "")
    for key, element in right.by_key.items():
        before = left.by_key.get(key)
        if before is None:
            continue
        if before.type != element.type:
            kind = ChangeKind.TYPE_CHANGED if key.is_field else ChangeKind.CHANGED
            yield _change(kind, before, element, before.type, element.type)
        elif right.document is not None:
            yield from rest.changes(element.path, _pointer(before), _pointer(element))
        elif before.optional != element.optional:
            yield _change(ChangeKind.CHANGED, before, element, _description(before), _description(element))
        elif before.doc != element.doc:
            yield _change(ChangeKind.CHANGED, before, element, before.doc, element.doc)


class _JsonRest:
    """What fields do not show of two JSON documents; nothing for documents in other languages."""

    def __init__(self, left: DocumentElements, right: DocumentElements) -> None:
        self._is_json = right.document is not None
        self._comparison = JsonComparison(left.document, right.document, _pointers(left), _pointers(right))
        self._paths = {_pointer(element): element.path for element in reversed(list(right.by_key.values()))}
        self._compared: set[tuple[str, str]] = set()

    def changes(self, path: str, left: str, right: str) -> Iterator[SchemaChange]:
        """The changes at a field, without those of the fields below it. left, right: its pointers."""
        if not self._is_json or (left, right) in self._compared:
            return
        self._compared.add((left, right))
        for difference in self._comparison.differences(left, right):
            left_place, right_place = (
                None if pointer is None else DocumentLocation(pointer=pointer)
                for pointer in (difference.left, difference.right)
            )
            own_path = self._paths.get(difference.right or "", path)
            kind = ChangeKind.CHANGED
            if not own_path and None in (difference.left, difference.right):
                kind = ChangeKind.ADDED if difference.left is None else ChangeKind.REMOVED
            yield SchemaChange(
                kind,
                own_path,
                difference.name,
                left_place,
                right_place,
                difference.before,
                difference.after,
            )


def _change(kind: ChangeKind, left: SchemaField, right: SchemaField, before: str, after: str) -> SchemaChange:
    return SchemaChange(kind, right.path, right.name, left.location, right.location, before, after)


def _is_property_of_new(key: ElementKey, elements: DocumentElements, others: DocumentElements) -> bool:
    """Whether an element is a property of one that the other document does not have."""
    owner, space, _ = key.path.partition(" ")
    if key.is_field or not space:
        return False
    keys = [ElementKey(owner, 0, is_field) for is_field in (True, False)]
    return any(one in elements.by_key for one in keys) and not any(one in others.by_key for one in keys)


def _description(element: SchemaField) -> str:
    return f"{element.type}, optional" if element.optional else element.type


def _pointers(elements: DocumentElements) -> frozenset[str]:
    return frozenset(map(_pointer, elements.by_key.values()))


def _pointer(element: SchemaField) -> str:
    return (element.location.pointer if element.location else None) or ""
