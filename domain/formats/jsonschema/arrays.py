"""Comparison of array keywords."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from annals.domain.formats.contract import Incompatibility
from annals.domain.formats.jsonschema.comparison import JsonSchemaComparison
from annals.domain.formats.jsonschema.node import SchemaNode
from annals.domain.formats.jsonschema.writer_cases import WriterCase


def array_incompatibilities(
    comparison: JsonSchemaComparison, reader: SchemaNode, case: WriterCase
) -> Iterator[Incompatibility]:
    """Why the reader's array keywords refuse arrays of a case."""
    yield from _compare_lengths(reader, case)
    yield from _compare_items(comparison, reader, case)
    if reader.contains is not None:
        yield from _compare_contains(comparison, reader, reader.contains, case)
    if reader.unevaluated_items is not None:
        yield from _compare_unevaluated(comparison, reader, reader.unevaluated_items, case)


def _compare_lengths(reader: SchemaNode, case: WriterCase) -> Iterator[Incompatibility]:
    if reader.min_items > case.min_items:
        text = f"The reader requires at least {reader.min_items} items, the writer requires {case.min_items}."
        yield Incompatibility("reader-minitems", text, reader.location("minItems"), case.location("minItems", "type"))
    if reader.max_items is not None and (case.max_items is None or reader.max_items < case.max_items):
        text = f"The reader accepts at most {reader.max_items} items, the writer may emit more."
        yield Incompatibility("reader-maxitems", text, reader.location("maxItems"), case.location("maxItems", "type"))
    has_one_item = case.max_items is not None and case.max_items <= 1
    if reader.unique and not has_one_item and not any(node.unique for node in case.nodes):
        text = "The reader requires that all items differ, the writer does not."
        yield Incompatibility(
            "reader-uniqueitems", text, reader.location("uniqueItems"), case.location("uniqueItems", "type")
        )


def _compare_items(comparison: JsonSchemaComparison, reader: SchemaNode, case: WriterCase) -> Iterator[Incompatibility]:
    for index in range(_compared_length(max(len(reader.prefix), case.positions) + 1, case)):
        subschema = reader.prefix[index] if index < len(reader.prefix) else reader.items
        if subschema is not None:
            yield from _compare_item(comparison, subschema, case, index)


def _compared_length(positions: int, case: WriterCase) -> int:
    """The number of positions to compare; the last one represents all that follow."""
    return positions if case.max_items is None else min(positions, case.max_items)


def _compare_item(
    comparison: JsonSchemaComparison, subschema: SchemaNode, case: WriterCase, index: int
) -> Iterator[Incompatibility]:
    writer_nodes = case.item(index)
    if writer_nodes:
        yield from comparison.incompatibilities(subschema, writer_nodes, case.closed)
    elif not subschema.free:
        text = "The reader restricts items that the writer leaves open."
        yield Incompatibility("reader-items", text, subschema.location(), case.location("items", "prefixItems", "type"))


def _compare_contains(
    comparison: JsonSchemaComparison, reader: SchemaNode, reader_schema: SchemaNode, case: WriterCase
) -> Iterator[Incompatibility]:
    containing_nodes = [node for node in case.nodes if node.contains is not None]
    # Any item may be the matching one, so the schemas that declare its members are not all known (closed=False).
    sufficient_nodes = [
        node
        for node in containing_nodes
        if node.contains and not comparison.incompatibilities(reader_schema, (node.contains,), False)
    ]
    all_items_match = _has_only_accepted_items(comparison, reader_schema, case)
    promised_count = max((node.min_contains for node in sufficient_nodes), default=0)
    if reader.min_contains > max(promised_count, case.min_items if all_items_match else 0):
        text = f"The reader requires {reader.min_contains} items of a kind that the writer does not promise."
        yield Incompatibility("reader-contains", text, reader.location("contains"), case.location("contains", "type"))
    if reader.max_contains is not None and not _has_at_most(comparison, reader.max_contains, reader_schema, case):
        text = f"The reader accepts at most {reader.max_contains} items of a kind, the writer may emit more."
        yield Incompatibility(
            "reader-maxcontains", text, reader.location("maxContains"), case.location("maxContains", "type")
        )


def _has_only_accepted_items(comparison: JsonSchemaComparison, reader_schema: SchemaNode, case: WriterCase) -> bool:
    items = [case.item(index) for index in range(_compared_length(case.positions + 1, case))]
    return all(
        writer_nodes and not comparison.incompatibilities(reader_schema, writer_nodes, case.closed)
        for writer_nodes in items
    )


def _has_at_most(comparison: JsonSchemaComparison, limit: int, reader_schema: SchemaNode, case: WriterCase) -> bool:
    if case.max_items is not None and case.max_items <= limit:
        return True
    counting_nodes = [node for node in case.nodes if node.contains is not None and node.max_contains is not None]
    return any(
        node.max_contains is not None
        and node.max_contains <= limit
        and node.contains is not None
        and not comparison.incompatibilities(node.contains, (reader_schema,), False)
        for node in counting_nodes
    )


def _compare_unevaluated(
    comparison: JsonSchemaComparison, reader: SchemaNode, reader_schema: SchemaNode, case: WriterCase
) -> Iterator[Incompatibility]:
    evaluated = _evaluated_count(comparison, reader, case)
    if evaluated is None:
        return
    for index in range(evaluated, _compared_length(max(evaluated, case.positions) + 1, case)):
        yield from _compare_item(comparison, reader_schema, case, index)


def _evaluated_count(comparison: JsonSchemaComparison, node: SchemaNode, case: WriterCase) -> int | None:
    """How many items, counted from the first, a schema certainly evaluates; None: all."""
    if node.items is not None:
        return None
    counts: list[int | None] = [len(node.prefix)]
    counts += [
        _evaluated_by_subschema(comparison, subschema, case)
        for subschema in (*node.all_of, *([node.ref] if node.ref else []))
    ]
    for branches in (node.any_of, node.one_of):
        # At least one branch applies, but which is unknown, so the minimum counts; branches that accept the whole case
        # apply.
        counts += [_smallest_count(_evaluated_by_subschema(comparison, subschema, case) for subschema in branches)]
        counts += [
            _evaluated_by_subschema(comparison, subschema, case)
            for subschema in branches
            if not comparison.case_incompatibilities(subschema, case)
        ]
    if node.then is not None and node.otherwise is not None:
        counts += [
            _smallest_count(
                _evaluated_by_subschema(comparison, subschema, case) for subschema in (node.then, node.otherwise)
            )
        ]
    return None if None in counts else max(subschema for subschema in counts if subschema is not None)


def _evaluated_by_subschema(comparison: JsonSchemaComparison, node: SchemaNode, case: WriterCase) -> int | None:
    return None if node.unevaluated_items is not None else _evaluated_count(comparison, node, case)


def _smallest_count(counts: Iterable[int | None]) -> int | None:
    """The smallest count, where None is greater than any number; 0 for no counts."""
    count_list = list(counts)
    return min((each for each in count_list if each is not None), default=None if count_list else 0)
