"""Finds defaults that never end: those of a record whose field default is that record again.

A reader that fills in such a default would never finish. Recursive types are fine, and so are their defaults as long as
these give the recursive field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from annals.domain.formats.avro.schema import AvroType

#: A field, by its pointer; or a record, by its index, of which a default gives no relevant field.
_Node = str | int


def find_endless_default(
    types: Sequence[AvroType], values: Mapping[str, tuple[int, Any]], choose_branch: Callable[[int, Any], int]
) -> str | None:
    """The pointer of a field whose default needs itself; None where all defaults end.

    values: (type, default) by the field's pointer; each default is valid. choose_branch: returns the branch of a union
    that accepts a value. Cost: linear in the defaults and in the fields that they omit.
    """
    container_defaults = {
        pointer: value for pointer, value in values.items() if isinstance(value[1], (dict, list)) and value[1] != []
    }
    graph = _DefaultGraph(types, container_defaults, choose_branch)
    finished: set[_Node] = set()
    for start in container_defaults:
        path: dict[_Node, Iterator[_Node]] = {} if start in finished else {start: graph.needed_defaults(start)}
        while path:
            node, successors = next(reversed(path.items()))
            unfinished = next((successor for successor in successors if successor not in finished), None)
            if unfinished is None:
                finished.add(node)
                del path[node]
            elif unfinished in path:
                return next(successor for successor in reversed(path) if isinstance(successor, str))
            else:
                path[unfinished] = graph.needed_defaults(unfinished)
    return None


class _DefaultGraph:
    """The graph of which defaults a default needs."""

    def __init__(
        self,
        types: Sequence[AvroType],
        container_defaults: Mapping[str, tuple[int, Any]],
        choose_branch: Callable[[int, Any], int],
    ) -> None:
        self._types = types
        self._container_defaults = container_defaults
        self._choose_branch = choose_branch
        self._records: dict[int, dict[str, str]] = {}
        self._types_of: dict[int, dict[str, int]] = {}

    def needed_defaults(self, node: _Node) -> Iterator[_Node]:
        """The defaults that a default needs: those of the fields that its records omit."""
        if isinstance(node, int):
            yield from self._fields(node).values()
            return
        pending = [self._container_defaults[node]]
        while pending:
            index, value = pending.pop()
            avro_type = self._types[index]
            if avro_type.kind == "union":
                pending.append((self._choose_branch(index, value), value))
            elif avro_type.kind == "record":
                types = self._field_types(index)
                pending += [(types[name], item) for name, item in value.items() if name in types]
                fields = self._fields(index)
                given_names = fields.keys() & value.keys()
                yield from (
                    [pointer for name, pointer in fields.items() if name not in given_names] if given_names else [index]
                )
            elif isinstance(value, (dict, list)):
                child_values = value.values() if isinstance(value, dict) else value
                pending += [(avro_type.parts[0].type, item) for item in child_values]

    def _field_types(self, record: int) -> dict[str, int]:
        """The types of a record's fields, by field name."""
        if record not in self._types_of:
            self._types_of[record] = {field.name: field.type.type for field in self._types[record].fields}
        return self._types_of[record]

    def _fields(self, record: int) -> dict[str, str]:
        """The pointers of a record's fields whose defaults may need others, by field name."""
        if record not in self._records:
            fields = self._types[record].fields
            self._records[record] = {
                field.name: field.pointer for field in fields if field.pointer in self._container_defaults
            }
        return self._records[record]
