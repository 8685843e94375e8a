"""Finds defaults that never end: those of a record whose field default is that record again.

A reader that fills in such a default would never finish. Recursive types are fine, and so are their defaults as long as
these give the recursive field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from domain.formats.avro.schema import AvroType

#: A field, by its pointer; or a record, by its index, of which a default gives no relevant field.
_Node = str | int


def find_endless_default(
    types: Sequence[AvroType], values: Mapping[str, tuple[int, Any]], chosen: Callable[[int, Any], int]
) -> str | None:
    """The pointer of a field whose default needs itself; None where all defaults end.

    values: (type, default) by the field's pointer; each default is valid. chosen: returns the branch of a union that
    accepts a value. Cost: linear in the defaults and in the fields that they omit.
    """
    held = {
        pointer: value for pointer, value in values.items() if isinstance(value[1], (dict, list)) and value[1] != []
    }
    walk = _DefaultGraph(types, held, chosen)
    ended: set[_Node] = set()
    for start in held:
        path: dict[_Node, Iterator[_Node]] = {} if start in ended else {start: walk.after(start)}
        while path:
            node, following = next(reversed(path.items()))
            after = next((one for one in following if one not in ended), None)
            if after is None:
                ended.add(node)
                del path[node]
            elif after in path:
                return next(one for one in reversed(path) if isinstance(one, str))
            else:
                path[after] = walk.after(after)
    return None


class _DefaultGraph:
    """The graph of which defaults a default needs."""

    def __init__(
        self, types: Sequence[AvroType], held: Mapping[str, tuple[int, Any]], chosen: Callable[[int, Any], int]
    ) -> None:
        self._types = types
        self._held = held
        self._chosen = chosen
        self._records: dict[int, dict[str, str]] = {}
        self._types_of: dict[int, dict[str, int]] = {}

    def after(self, node: _Node) -> Iterator[_Node]:
        """The defaults that a default needs: those of the fields that its records omit."""
        if isinstance(node, int):
            yield from self._fields(node).values()
            return
        todo = [self._held[node]]
        while todo:
            index, value = todo.pop()
            found = self._types[index]
            if found.kind == "union":
                todo.append((self._chosen(index, value), value))
            elif found.kind == "record":
                types = self._inner(index)
                todo += [(types[name], item) for name, item in value.items() if name in types]
                fields = self._fields(index)
                given = fields.keys() & value.keys()
                yield from [pointer for name, pointer in fields.items() if name not in given] if given else [index]
            elif isinstance(value, (dict, list)):
                inner = value.values() if isinstance(value, dict) else value
                todo += [(found.parts[0].type, item) for item in inner]

    def _inner(self, record: int) -> dict[str, int]:
        """The types of a record's fields, by field name."""
        if record not in self._types_of:
            self._types_of[record] = {field.name: field.type.type for field in self._types[record].fields}
        return self._types_of[record]

    def _fields(self, record: int) -> dict[str, str]:
        """The pointers of a record's fields whose defaults may need others, by field name."""
        if record not in self._records:
            fields = self._types[record].fields
            self._records[record] = {field.name: field.pointer for field in fields if field.pointer in self._held}
        return self._records[record]
