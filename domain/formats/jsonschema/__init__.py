"""JSON Schema, drafts 04, 06, 07, 2019-09 and 2020-12.

A document holds against the meta-schema of the release that it is declared with, whatever `$schema` says; its
references lead somewhere in it or out of it, and nothing outside is ever fetched: such a place is equal to the same
reference only. A reader reads a writer when each value that the writer emits is valid for the reader, in the closed
world of SC-36 (`objects`, `case`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from domain.formats.contract import MAX_INCOMPATIBILITIES, DocumentLocation, Incompatibility, InvalidDocument, NewerSide
from domain.formats.json_document import load_json
from domain.formats.jsonschema import drafts
from domain.formats.jsonschema.comparison import MAX_STEPS, STEPS_PER_NODE, JsonSchemaComparison, StepLimitExceeded
from domain.formats.jsonschema.empty_cases import has_no_values
from domain.formats.jsonschema.graph import build_graph
from domain.formats.jsonschema.keyword_rules import keyword_incompatibilities
from domain.formats.jsonschema.node import SchemaNode
from domain.formats.jsonschema.normal_form import normal_form

__all__ = ["SchemaGraph", "canonical_form", "incompatibilities", "parse"]


@dataclass(frozen=True, slots=True)
class SchemaGraph:
    """A document with its schemas as a graph. size: how many schemas there are."""

    document: Any
    root: SchemaNode
    size: int


def parse(document: bytes, name: str) -> SchemaGraph:
    """The document, held against the release of its `format` value. Raises: InvalidDocument. Cost: linear."""
    draft = drafts.draft_of_format(name)
    value = load_json(document)
    try:
        drafts.check_schema(draft, value, len(document))
        root, size = build_graph(value, draft, document)
    except RecursionError:
        raise InvalidDocument("the nesting is too deep", DocumentLocation(pointer="")) from None
    return SchemaGraph(value, root, size)


def canonical_form(parsed: SchemaGraph) -> bytes:
    """JSON in a normal form of our own, as none is published: see `normal`."""
    return normal_form(parsed.document)


def incompatibilities(
    reader: SchemaGraph, writer: SchemaGraph, _newer: NewerSide | None = None, /
) -> Sequence[Incompatibility]:
    """Why values of the writer's schema are not all valid for the reader's; empty where they are. At most TOLD.

    Cost: linear in schemas without combinations; with them bounded by STEPS.
    """
    return compare_nodes(reader.root, writer.root, reader.size + writer.size)


def compare_nodes(reader: SchemaNode, writer: SchemaNode, size: int) -> Sequence[Incompatibility]:
    """The same for two nodes of documents with so many nodes together."""
    comparison = JsonSchemaComparison(keyword_incompatibilities, has_no_values, MAX_STEPS + STEPS_PER_NODE * size)
    try:
        return comparison.reads(reader, (writer,))[:MAX_INCOMPATIBILITIES]
    except (StepLimitExceeded, RecursionError):
        return [Incompatibility("undecided", _UNDECIDED, reader.spot(), writer.spot())]


_UNDECIDED: Final = (
    "The two documents combine their schemas in too many ways, or nest them too deeply, to be compared; what cannot be "
    "decided counts as incompatible."
)
