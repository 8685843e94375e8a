"""Comparison of object keywords. A writer with declared members never emits undeclared ones (SC-36).

So a reader may declare more members than the writer as long as it does not require them. It may declare fewer as long
as it does not refuse others: `additionalProperties: false` says that the reader cannot read them, as the table of SC-36
says for the closed content of XSD.
"""

from __future__ import annotations

from collections.abc import Iterator

from annals.domain.formats.contract import Incompatibility
from annals.domain.formats.jsonschema.comparison import JsonSchemaComparison
from annals.domain.formats.jsonschema.instance_validation import accepts_value
from annals.domain.formats.jsonschema.node import SchemaNode
from annals.domain.formats.jsonschema.values import matches_pattern
from annals.domain.formats.jsonschema.writer_cases import SchemaNodes, WriterCase


def object_incompatibilities(
    comparison: JsonSchemaComparison, reader: SchemaNode, case: WriterCase
) -> Iterator[Incompatibility]:
    """Why the reader's object keywords refuse objects of a case."""
    yield from _compare_required(reader, case)
    yield from _compare_counts(reader, case)
    yield from _compare_members(comparison, reader, case)
    if reader.names is not None:
        yield from _compare_names(comparison, reader, reader.names, case)
    if reader.unevaluated is not None:
        yield from _compare_unevaluated(comparison, reader, reader.unevaluated, case)


def _compare_required(reader: SchemaNode, case: WriterCase) -> Iterator[Incompatibility]:
    for name in sorted(reader.required - case.required):
        text = f'The reader requires "{name[:80]}", which the writer may leave out.'
        yield Incompatibility(
            "reader-required", text, reader.location("required"), case.location("required", "properties")
        )
    for name, required_names in sorted(reader.dependent_required.items()):
        if case.can_have(name) and not required_names <= case.with_node(f"has {name}", reader.requiring(name)).required:
            text = f'The reader requires further members where "{name[:80]}" is, which the writer may leave out.'
            writer_location = case.location("dependentRequired", "dependencies", "required", "properties")
            yield Incompatibility(
                "reader-dependentrequired", text, reader.location("dependentRequired", "dependencies"), writer_location
            )


def _compare_counts(reader: SchemaNode, case: WriterCase) -> Iterator[Incompatibility]:
    writer_minimum = max(len(case.required), *(node.min_properties for node in case.nodes))
    if reader.min_properties > writer_minimum:
        text = f"The reader requires at least {reader.min_properties} members, the writer requires {writer_minimum}."
        yield Incompatibility(
            "reader-minproperties", text, reader.location("minProperties"), case.location("minProperties")
        )
    if reader.max_properties is None:
        return
    writer_maxima = [node.max_properties for node in case.nodes if node.max_properties is not None]
    if case.other_members is None and not case.patterns:
        writer_maxima.append(sum(case.can_have(name) for name in case.members))
    if not writer_maxima or reader.max_properties < min(writer_maxima):
        text = f"The reader accepts at most {reader.max_properties} members, the writer may emit more."
        yield Incompatibility(
            "reader-maxproperties", text, reader.location("maxProperties"), case.location("maxProperties")
        )


def _compare_members(
    comparison: JsonSchemaComparison, reader: SchemaNode, case: WriterCase
) -> Iterator[Incompatibility]:
    for name, writer_nodes in case.members.items():
        if not any(node.never for node in writer_nodes):
            for subschema in _reader_schemas(reader, name):
                yield from _compare_member(comparison, subschema, reader, case, writer_nodes, name)
    yield from _compare_open_members(comparison, reader, case)


def _reader_schemas(reader: SchemaNode, name: str) -> list[SchemaNode]:
    """The reader's schemas for a member, including those that possibly apply to it."""
    subschemas = [
        subschema for pattern, subschema in reader.by_pattern.items() if matches_pattern(pattern, name) is not False
    ]
    if name in reader.properties:
        return [reader.properties[name], *subschemas]
    if not any(matches_pattern(pattern, name) for pattern in reader.by_pattern) and reader.additional is not None:
        subschemas.append(reader.additional)
    return subschemas


def _compare_member(
    comparison: JsonSchemaComparison,
    subschema: SchemaNode,
    reader: SchemaNode,
    case: WriterCase,
    writer_nodes: SchemaNodes,
    name: str,
) -> Iterator[Incompatibility]:
    """Why a member that the writer emits is refused.

    writer_nodes: the writer's schemas for it, none of which is `false`.
    """
    if subschema.free or any(comparison.equality(subschema, node) for node in writer_nodes):
        return
    if writer_nodes and all(
        comparison.is_empty(writer_case) for writer_case in comparison.cases(writer_nodes, case.closed)
    ):
        return
    if subschema.never:
        text = f'The reader does not accept "{name[:80]}", which the writer may emit.'
        reader_location = reader.location("additionalProperties", "unevaluatedProperties", "properties")
        there = writer_nodes[0].location() if writer_nodes else case.location("properties", "additionalProperties")
        yield Incompatibility("reader-property-refused", text, reader_location, there)
    elif writer_nodes:
        yield from comparison.incompatibilities(subschema, writer_nodes, case.closed)
    else:
        text = f'The reader restricts "{name[:80]}", the writer does not.'
        yield Incompatibility(
            "reader-type", text, subschema.location("type"), case.location("properties", "additionalProperties")
        )


def _compare_open_members(
    comparison: JsonSchemaComparison, reader: SchemaNode, case: WriterCase
) -> Iterator[Incompatibility]:
    """Why members that the writer declares by a pattern or by `additionalProperties` are refused."""
    # Members that the writer declares by a pattern are compared with the reader's schema for the same pattern, even if
    # the reader has further schemas for them.
    declared = {pattern for node in case.nodes for pattern in node.by_pattern}
    other_patterns = [subschema for pattern, subschema in reader.by_pattern.items() if pattern not in declared]
    for pattern, node in case.patterns:
        same_pattern = [reader.by_pattern[pattern]] if pattern in reader.by_pattern else []
        for subschema in (*same_pattern, *other_patterns, *_schemas_for_pattern(reader, pattern, case)):
            yield from _compare_member(comparison, subschema, reader, case, () if node.free else (node,), pattern)
    if case.other_members is None:
        return
    for subschema in (*other_patterns, *([reader.additional] if reader.additional else [])):
        yield from _compare_member(comparison, subschema, reader, case, case.other_members, "*")
    for name, subschema in reader.properties.items():
        if name not in case.members and case.can_have(name):
            yield from _compare_member(comparison, subschema, reader, case, case.member(name), name)


def _schemas_for_pattern(reader: SchemaNode, pattern: str, case: WriterCase) -> Iterator[SchemaNode]:
    """The reader's schemas, other than those by pattern, that may apply to members which match a pattern."""
    for name, subschema in reader.properties.items():
        if name not in case.members and matches_pattern(pattern, name) is not False:
            yield subschema
    if pattern not in reader.by_pattern and reader.additional is not None:
        yield reader.additional


def _compare_names(
    comparison: JsonSchemaComparison, reader: SchemaNode, names_schema: SchemaNode, case: WriterCase
) -> Iterator[Incompatibility]:
    reader_location = reader.location("propertyNames")
    for name in case.members:
        if case.can_have(name) and not accepts_value(names_schema, name):
            text = f'The reader does not accept the name "{name[:80]}".'
            yield Incompatibility("reader-propertynames", text, reader_location, case.location("properties"))
    writer_schemas = tuple(node.names for node in case.nodes if node.names is not None)
    if (case.other_members is not None or case.patterns) and (
        not writer_schemas or comparison.incompatibilities(names_schema, writer_schemas, False)
    ):
        text = "The reader restricts the names of members more than the writer."
        yield Incompatibility(
            "reader-propertynames",
            text,
            reader_location,
            case.location("propertyNames", "additionalProperties", "patternProperties"),
        )


def _compare_unevaluated(
    comparison: JsonSchemaComparison, reader: SchemaNode, reader_schema: SchemaNode, case: WriterCase
) -> Iterator[Incompatibility]:
    for name, writer_nodes in case.members.items():
        if case.can_have(name) and not _is_evaluated(comparison, reader, case, name):
            yield from _compare_member(comparison, reader_schema, reader, case, writer_nodes, name)
    for pattern, node in case.patterns:
        if not _is_pattern_evaluated(comparison, reader, case, pattern):
            yield from _compare_member(comparison, reader_schema, reader, case, () if node.free else (node,), pattern)
    if case.other_members is not None and not _is_pattern_evaluated(comparison, reader, case, None):
        yield from _compare_member(comparison, reader_schema, reader, case, case.other_members, "*")


def _is_evaluated(comparison: JsonSchemaComparison, node: SchemaNode, case: WriterCase, name: str) -> bool:
    """Whether a schema certainly evaluates a member."""
    if name in node.properties or node.additional is not None:
        return True
    if any(matches_pattern(pattern, name) for pattern in node.by_pattern):
        return True
    return any(
        subschema.unevaluated is not None or _is_evaluated(comparison, subschema, case, name)
        for subschema in _applying_subschemas(comparison, node, case)
    )


def _is_pattern_evaluated(
    comparison: JsonSchemaComparison, node: SchemaNode, case: WriterCase, pattern: str | None
) -> bool:
    """Whether a schema certainly evaluates all members that match a pattern; pattern=None: all members."""
    if node.additional is not None or pattern in node.by_pattern:
        return True
    return any(
        subschema.unevaluated is not None or _is_pattern_evaluated(comparison, subschema, case, pattern)
        for subschema in _applying_subschemas(comparison, node, case)
    )


def _applying_subschemas(comparison: JsonSchemaComparison, node: SchemaNode, case: WriterCase) -> Iterator[SchemaNode]:
    """The subschemas for the same value that apply to all values of a case."""
    yield from node.all_of
    if node.ref is not None:
        yield node.ref
    yield from (
        subschema
        for subschema in (*node.any_of, *node.one_of)
        if not comparison.case_incompatibilities(subschema, case)
    )
