"""JSON Schema, drafts 04, 06, 07, 2019-09 and 2020-12.

A document is checked against the meta-schema of the draft in its `format`; its `$schema` matters only where that names
no draft. References may lead
out of the document, but nothing is ever fetched: an external reference equals only the same reference. A reader
accepts a writer when each value that the writer emits is valid for the reader, in the closed world of SC-36.
Begin with `node.py`, then `writer_cases.py` and `comparison.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from annals.domain.formats.contract import (
    MAX_INCOMPATIBILITIES,
    DocumentLocation,
    Incompatibility,
    InvalidDocument,
    NewerSide,
)
from annals.domain.formats.json_document import load_json
from annals.domain.formats.jsonschema import drafts
from annals.domain.formats.jsonschema.comparison import (
    MAX_STEPS,
    STEPS_PER_NODE,
    JsonSchemaComparison,
    StepLimitExceeded,
)
from annals.domain.formats.jsonschema.empty_cases import has_no_values
from annals.domain.formats.jsonschema.graph import build_graph
from annals.domain.formats.jsonschema.keyword_rules import keyword_incompatibilities
from annals.domain.formats.jsonschema.node import SchemaNode
from annals.domain.formats.jsonschema.normal_form import normal_form

__all__ = ["SchemaGraph", "canonical_form", "incompatibilities", "parse"]


@dataclass(frozen=True, slots=True)
class SchemaGraph:
    """A document with its schemas as a graph. size: the number of schemas."""

    document: Any
    root: SchemaNode
    size: int


def parse(document: bytes, name: str) -> SchemaGraph:
    """The document, checked against the draft of its `format` value. Raises: InvalidDocument. Cost: linear."""
    value = load_json(document)
    draft = drafts.draft_of_document(name, value)
    try:
        drafts.check_schema(draft, value, len(document))
        root, size = build_graph(value, draft, document)
    except RecursionError:
        raise InvalidDocument("the nesting is too deep", DocumentLocation(pointer="")) from None
    return SchemaGraph(value, root, size)


def canonical_form(parsed: SchemaGraph) -> bytes:
    """JSON in a normal form of this project, because no standard one exists; see `normal_form.py`."""
    return normal_form(parsed.document)


def incompatibilities(
    reader: SchemaGraph,
    writer: SchemaGraph,
    _newer: NewerSide | None = None,
    /,
    *,
    limit: int = MAX_INCOMPATIBILITIES,
) -> Sequence[Incompatibility]:
    """Why values of the writer's schema are invalid for the reader's; empty if none, at most `limit`.

    Cost: linear for schemas without combinations, else bounded by MAX_STEPS.
    """
    return compare_nodes(reader.root, writer.root, reader.size + writer.size, limit)


def compare_nodes(reader: SchemaNode, writer: SchemaNode, size: int, limit: int) -> Sequence[Incompatibility]:
    """The incompatibilities of two nodes. size: the number of nodes in both documents."""
    comparison = JsonSchemaComparison(
        keyword_incompatibilities, has_no_values, MAX_STEPS + STEPS_PER_NODE * size, limit
    )
    try:
        return comparison.incompatibilities(reader, (writer,))[:limit]
    except (StepLimitExceeded, RecursionError):
        return [Incompatibility("undecided", _UNDECIDED, reader.location(), writer.location())]


_UNDECIDED: Final = (
    "The two documents combine their schemas in too many ways, or nest them too deeply, to be compared; what cannot be "
    "decided counts as incompatible."
)
