"""Compares the parts of two JSON documents that no field describes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from annals.domain.formats.json_fragment import json_fragment
from annals.domain.values.json_pointer import join_pointer, split_pointer

_ABSENT: Final = object()


class JsonDifference(NamedTuple):
    """A difference of two values. left, right: pointers; None where the value is not there. name: of its member."""

    left: str | None
    right: str | None
    name: str
    before: str | None
    after: str | None


class _JsonPart(NamedTuple):
    pointer: str
    value: Any


@dataclass(frozen=True, slots=True)
class JsonComparison:
    """A comparison of two documents without their fields.

    left_fields, right_fields: the pointers of the fields, which are compared by their paths.
    """

    left: Any
    right: Any
    left_fields: Set[str]
    right_fields: Set[str]

    def differences(self, left_pointer: str, right_pointer: str) -> Iterator[JsonDifference]:
        """The differences of the values at two pointers, each as deep as objects lead to it."""
        left, right = value_at(self.left, left_pointer), value_at(self.right, right_pointer)
        return self._values(_JsonPart(left_pointer, left), _JsonPart(right_pointer, right), "")

    def _values(self, left: _JsonPart, right: _JsonPart, name: str) -> Iterator[JsonDifference]:
        if isinstance(left.value, dict) and isinstance(right.value, dict):
            yield from self._objects(left, right)
            return
        before, after = _without(left, self.left_fields), _without(right, self.right_fields)
        if isinstance(before, list) and isinstance(after, list) and _may_be_paired(before, after):
            for index in range(len(left.value)):
                yield from self._values(_member(left, index), _member(right, index), name)
        elif not _are_equal(before, after):
            yield JsonDifference(left.pointer, right.pointer, name, json_fragment(before), json_fragment(after))

    def _objects(self, left: _JsonPart, right: _JsonPart) -> Iterator[JsonDifference]:
        for name in {**left.value, **right.value}:
            left_member, right_member = _member(left, name), _member(right, name)
            if left_member.pointer in self.left_fields or right_member.pointer in self.right_fields:
                continue
            if name == "required" and _is_name_list(left_member.value) and _is_name_list(right_member.value):
                yield from _required_members(left, right)
            elif right_member.value is _ABSENT:
                yield from self._single(left_member, self.left_fields, name, is_left=True)
            elif left_member.value is _ABSENT:
                yield from self._single(right_member, self.right_fields, name, is_left=False)
            else:
                yield from self._values(left_member, right_member, name)

    @staticmethod
    def _single(place: _JsonPart, fields: Set[str], name: str, *, is_left: bool) -> Iterator[JsonDifference]:
        """A member of one side, unless it only holds fields."""
        value = _without(place, fields)
        if value in ({}, []) and place.value not in ({}, []):
            return
        fragment = json_fragment(value)
        if is_left:
            yield JsonDifference(place.pointer, None, name, fragment, None)
        else:
            yield JsonDifference(None, place.pointer, name, None, fragment)


def _required_members(left: _JsonPart, right: _JsonPart) -> Iterator[JsonDifference]:
    """A difference for each member that only one side requires, unless only one side declares it."""
    names = [place.value.get("required") or [] for place in (left, right)]
    declared = [place.value.get("properties") or {} for place in (left, right)]
    for name in dict.fromkeys(name for side in names for name in side):
        is_required, is_declared = [name in side for side in names], [name in side for side in declared]
        if is_required[0] == is_required[1] or is_declared[0] != is_declared[1]:
            continue
        steps = ("properties", name) if is_declared[0] else ("required",)
        before, after = ("required" if required else "optional" for required in is_required)
        left_pointer, right_pointer = (join_pointer(place.pointer, *steps) for place in (left, right))
        yield JsonDifference(left_pointer, right_pointer, name, before, after)


def value_at(document: Any, pointer: str) -> Any:
    """The value at a pointer."""
    for step in split_pointer(pointer):
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document


def _member(place: _JsonPart, step: str | int) -> _JsonPart:
    value = place.value.get(step, _ABSENT) if isinstance(place.value, dict) else place.value[step]
    return _JsonPart(join_pointer(place.pointer, step), value)


def _without(place: _JsonPart, fields: Set[str]) -> Any:
    """A value without the fields in it."""
    if not isinstance(place.value, dict | list):
        return place.value
    steps: Iterable[Any] = place.value if isinstance(place.value, dict) else range(len(place.value))
    kept = [(step, member) for step in steps if (member := _member(place, step)).pointer not in fields]
    values = [(step, _without(member, fields)) for step, member in kept]
    return dict(values) if isinstance(place.value, dict) else [value for _, value in values]


def _is_name_list(value: Any) -> bool:
    return value is _ABSENT or (isinstance(value, list) and all(isinstance(item, str) for item in value))


def _may_be_paired(before: list[Any], after: list[Any]) -> bool:
    """Whether two lists are compared item by item: lists of objects of one length; names and values are not."""
    return len(before) == len(after) and any(isinstance(item, dict | list) for item in (*before, *after))


def _are_equal(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal; Python takes true for 1."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_are_equal(value, right[name]) for name, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_are_equal, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)
