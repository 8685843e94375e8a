"""JSON Schema texts: drafts 04 to 2020-12. Nothing is fetched; `$ref` leads into the text or to its references.

Rules CSR-415, CSR-416, CSR-418, CSR-509, CSR-510.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from annals.domain.confluent.compatibility.difference import Difference
from annals.domain.confluent.compatibility.json_schema import json_differences
from annals.domain.confluent.compatibility.json_schema_nodes import JsonNode, has_assertions
from annals.domain.confluent.texts.json_schema_references import JsonReferences, ValueRole
from annals.domain.formats.contract import DocumentLocation, InvalidDocument
from annals.domain.formats.json_document import load_json
from annals.domain.formats.jsonschema import drafts
from annals.domain.values.json_text import dumps


@dataclass(frozen=True, slots=True)
class JsonText:
    """A parsed text. references: those of the decoded texts by name, with its own under the empty name."""

    document: Any
    references: JsonReferences


def parse(text: bytes, references: Mapping[str, bytes]) -> JsonText:
    """See `SchemaTexts`."""
    document = load_json(text)
    if not isinstance(document, dict | bool):
        raise InvalidDocument("a schema has to be an object, true or false", DocumentLocation(pointer=""))
    documents = {name: load_json(reference) for name, reference in references.items()} | {"": document}
    try:
        drafts.check_schema(drafts.draft_of_document(drafts.ANY_DRAFT, document), document, len(text))
        found = JsonReferences(documents)
        for ref in found.unresolved(""):
            hint = "" if ref.startswith("#") else '; name the schema in "references"'
            raise InvalidDocument(f'nothing resolves "$ref": {ref!r}{hint}')
    except RecursionError:
        raise InvalidDocument("the nesting is too deep", DocumentLocation(pointer="")) from None
    return JsonText(document, found)


def violation(parsed: JsonText) -> str | None:
    """None: stored texts have to keep all rules of new ones."""


def canonical_text(parsed: JsonText) -> str:
    return dumps(parsed.document).decode()


def normalized_text(parsed: JsonText) -> str:
    return dumps(_sorted(parsed.document)).decode()


def stored_text(parsed: JsonText, sent: str) -> str:
    return sent


def resolved(parsed: JsonText) -> JsonText | None:
    """The text with each `$ref` to another text replaced by what it leads to; None if one leads to itself."""
    try:
        document = _with_references(parsed.references, parsed.document, ValueRole.SCHEMA, ())
    except RecursionError:
        return None
    return JsonText(document, JsonReferences({"": document}))


def declared_format(parsed: JsonText) -> str | None:
    return drafts.declared_format(parsed.document)


def formatted_text(parsed: JsonText, format: str) -> str | None:
    return None


def differences(reader: JsonText, writer: JsonText, is_lenient: bool) -> list[Difference]:
    return json_differences(
        JsonNode(writer.document, writer.references), JsonNode(reader.document, reader.references), is_lenient
    )


def _with_references(references: JsonReferences, value: Any, role: ValueRole, path: tuple[int, ...]) -> Any:
    """A value of a text with the texts that it refers to put in. path: the schemas around it that were put in.

    References within the main text stay. Raises: RecursionError for a reference that leads to itself.
    """
    if isinstance(value, list):
        return [_with_references(references, part, role, path) for part in value]
    if not isinstance(value, dict) or role is ValueRole.DATA:
        return value
    found = references.find(value) if role is ValueRole.SCHEMA else None
    replacement: Any = None
    if found is not None and found[0]:
        target = found[1]
        if id(target) in path:
            raise RecursionError
        replacement = _with_references(references, target, ValueRole.SCHEMA, (*path, id(target)))
        if not (references.applies_siblings(value) and has_assertions(value)):
            return replacement
    members = {name: _with_references(references, part, role.below(name), path) for name, part in value.items()}
    if replacement is not None:
        del members["$ref"]
        members["allOf"] = [replacement, *members.get("allOf", ())]
    return members


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
