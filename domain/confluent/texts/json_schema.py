"""JSON Schema texts: drafts 04 to 2020-12. Nothing is fetched; `$ref` leads into the text or to its references.

Rules CSR-415, CSR-416, CSR-418, CSR-509, CSR-510.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urldefrag, urljoin

from annals.domain.confluent.compatibility.difference import Difference
from annals.domain.confluent.compatibility.json_schema import json_differences
from annals.domain.confluent.compatibility.json_schema_nodes import JsonNode
from annals.domain.formats.contract import DocumentLocation, InvalidDocument
from annals.domain.formats.json_document import load_json
from annals.domain.formats.jsonschema import drafts
from annals.domain.values.json_text import dumps

#: Members whose values are no schemas, so a `$ref` in them is data.
_DATA_MEMBERS: Final = frozenset(("const", "enum", "default", "examples"))


@dataclass(frozen=True, slots=True)
class JsonText:
    """A parsed text. documents: the decoded texts by name, with its own under the empty name."""

    document: Any
    documents: Mapping[str, Any]


def parse(text: bytes, references: Mapping[str, bytes]) -> JsonText:
    """See `SchemaTexts`."""
    document = load_json(text)
    if not isinstance(document, dict | bool):
        raise InvalidDocument("a schema has to be an object, true or false", DocumentLocation(pointer=""))
    documents = {name: load_json(reference) for name, reference in references.items()} | {"": document}
    try:
        drafts.check_schema(drafts.draft_of_document(drafts.ANY_DRAFT, document), document, len(text))
        for ref, base in _refs(document, ""):
            if resolve(documents, base, ref) is None:
                raise InvalidDocument(f'nothing resolves "$ref": {ref!r}; name the schema in "references"')
    except RecursionError:
        raise InvalidDocument("the nesting is too deep", DocumentLocation(pointer="")) from None
    return JsonText(document, documents)


def canonical_text(parsed: JsonText) -> str:
    return dumps(parsed.document).decode()


def normalized_text(parsed: JsonText) -> str:
    return dumps(_sorted(parsed.document)).decode()


def stored_text(parsed: JsonText, sent: str) -> str:
    return sent


def resolved(parsed: JsonText) -> JsonText | None:
    """The text with each `$ref` to another text replaced by what it leads to; None if one leads to itself."""
    try:
        document = _with_references(parsed.documents, "", parsed.document, ())
    except RecursionError:
        return None
    return JsonText(document, {"": document})


def declared_format(parsed: JsonText) -> str | None:
    return drafts.declared_format(parsed.document)


def formatted_text(parsed: JsonText, format: str) -> str | None:
    return None


def differences(reader: JsonText, writer: JsonText, is_lenient: bool) -> list[Difference]:
    return json_differences(_root(writer), _root(reader), is_lenient)


def resolve(documents: Mapping[str, Any], base: str, ref: str) -> tuple[str, Any] | None:
    """The name of the text to which a `$ref` leads, and the schema there; None where it leads nowhere.

    base: the name of the text with the `$ref`.
    """
    address, fragment = urldefrag(ref)
    own_id = _id_of(documents.get(base))
    candidates = (address, urljoin(base, address), urljoin(own_id, address)) if address else (base,)
    name = next((candidate for candidate in candidates if candidate in documents), None)
    if name is None:
        name = next((other for other, text in documents.items() if address and _id_of(text) in candidates), None)
    if name is None:
        return None
    target = _at_fragment(documents[name], unquote(fragment))
    if target is not None:
        return name, target[0]
    return None


def _at_fragment(document: Any, fragment: str) -> tuple[Any] | None:
    if not fragment:
        return (document,)
    if not fragment.startswith("/"):
        return _by_anchor(document, fragment)
    value = document
    for token in fragment[1:].split("/"):
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return (value,)


def _by_anchor(schema: Any, anchor: str) -> tuple[Any] | None:
    """The schema with an anchor, or with an id that ends in it."""
    pending = [schema]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending += value
        elif isinstance(value, dict):
            if value.get("$anchor") == anchor or f"#{anchor}" in (value.get("$id"), value.get("id")):
                return (value,)
            pending += value.values()
    return None


def _id_of(document: Any) -> str:
    id = (document.get("$id") or document.get("id") or "") if isinstance(document, dict) else ""
    return id if isinstance(id, str) else ""


def _refs(schema: Any, base: str) -> list[tuple[str, str]]:
    """Every `$ref` of a schema, with the name of its text."""
    refs: list[tuple[str, str]] = []
    pending = [schema]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending += value
        elif isinstance(value, dict):
            ref = value.get("$ref")
            if isinstance(ref, str):
                refs.append((ref, base))
            pending += (part for name, part in value.items() if name not in _DATA_MEMBERS)
    return refs


def _with_references(documents: Mapping[str, Any], base: str, schema: Any, path: tuple[int, ...]) -> Any:
    """A schema of a text with the references in it replaced. path: the replaced schemas around it.

    References within the main text stay. Raises: RecursionError for a reference that leads to itself.
    """
    if isinstance(schema, list):
        return [_with_references(documents, base, part, path) for part in schema]
    if not isinstance(schema, dict):
        return schema
    ref = schema.get("$ref")
    found = resolve(documents, base, ref) if isinstance(ref, str) else None
    if found is not None and found[0]:
        name, target = found
        if id(target) in path:
            raise RecursionError
        return _with_references(documents, name, target, (*path, id(target)))
    return {
        name: part if name in _DATA_MEMBERS else _with_references(documents, base, part, path)
        for name, part in schema.items()
    }


def _root(text: JsonText) -> JsonNode:
    return JsonNode(text.document, "", lambda base, ref: resolve(text.documents, base, ref))


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
