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

from domain.formats.contract import TOLD, Incompatibility, Newer, Spot, Violation
from domain.formats.jsondocument import value_of
from domain.formats.jsonschema import drafts
from domain.formats.jsonschema.comparison import STEPS, STEPS_PER_NODE, Comparison, Exhausted
from domain.formats.jsonschema.graph import built
from domain.formats.jsonschema.node import Node
from domain.formats.jsonschema.normal import normal
from domain.formats.jsonschema.rules import rules
from domain.formats.jsonschema.voids import is_void

__all__ = ["Parsed", "canonical", "parse", "unreadable"]


@dataclass(frozen=True, slots=True)
class Parsed:
    """A document with its schemas as a graph. size: how many schemas there are."""

    document: Any
    root: Node
    size: int


def parse(document: bytes, name: str) -> Parsed:
    """The document, held against the release of its `format` value. Raises: Violation. Cost: linear."""
    draft = drafts.named(name)
    value = value_of(document)
    try:
        drafts.check(draft, value, len(document))
        root, size = built(value, draft, document)
    except RecursionError:
        raise Violation("the nesting is too deep", Spot(pointer="")) from None
    return Parsed(value, root, size)


def canonical(parsed: Parsed) -> bytes:
    """JSON in a normal form of our own, as none is published: see `normal`."""
    return normal(parsed.document)


def unreadable(reader: Parsed, writer: Parsed, _newer: Newer | None = None, /) -> Sequence[Incompatibility]:
    """Why values of the writer's schema are not all valid for the reader's; empty where they are. At most TOLD.

    Cost: linear in schemas without combinations; with them bounded by STEPS.
    """
    return compared(reader.root, writer.root, reader.size + writer.size)


def compared(reader: Node, writer: Node, size: int) -> Sequence[Incompatibility]:
    """The same for two nodes of documents with so many nodes together."""
    comparison = Comparison(rules, is_void, STEPS + STEPS_PER_NODE * size)
    try:
        return comparison.reads(reader, (writer,))[:TOLD]
    except (Exhausted, RecursionError):
        return [Incompatibility("undecided", _UNDECIDED, reader.spot(), writer.spot())]


_UNDECIDED: Final = (
    "The two documents combine their schemas in too many ways, or nest them too deeply, to be compared; what cannot be "
    "decided counts as incompatible."
)
