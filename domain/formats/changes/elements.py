"""The elements of a document that a comparison shows: its fields, and what else its format lets it declare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

from annals.domain.formats import FormatModule
from annals.domain.formats.contract import DocumentLocation
from annals.domain.formats.fields import SchemaField, schema_fields


class ElementKey(NamedTuple):
    """What an element has in common with the same one of another document.

    occurrence: how many elements with the same path come before it.
    """

    path: str
    occurrence: int
    is_field: bool


@dataclass(frozen=True, slots=True)
class DocumentElements:
    """The elements of one document. document: its JSON value; None for formats that are not JSON."""

    by_key: Mapping[ElementKey, SchemaField]
    document: Any

    @property
    def start(self) -> DocumentLocation:
        """The location of the whole document."""
        return DocumentLocation(line=1) if self.document is None else DocumentLocation(pointer="")


def read_elements(format_module: FormatModule, format: str, parsed: Any) -> DocumentElements:
    """The elements of a document, in its order."""
    module = import_module(f"annals.domain.formats.{format_module.module}.fields")
    by_key: dict[ElementKey, SchemaField] = {}
    counts: Counter[tuple[str, bool]] = Counter()

    def add(elements: Iterable[SchemaField], *, is_field: bool) -> None:
        for element in elements:
            name = element.path, is_field
            by_key[ElementKey(element.path, counts[name], is_field)] = element
            counts[name] += 1

    add(schema_fields(format, parsed), is_field=True)
    if hasattr(module, "declarations"):
        add(module.declarations(parsed), is_field=False)
    return DocumentElements(by_key, module.document(parsed) if hasattr(module, "document") else None)
