"""Where each `$ref` of JSON Schema texts leads. Nothing is fetched.

Rules CSR-509, CSR-510.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, Final
from urllib.parse import unquote, urldefrag, urljoin

from annals.domain.formats.jsonschema import drafts

#: Keywords whose values are no schemas, so a `$ref` in them is data.
_DATA_KEYWORDS: Final = frozenset(("const", "enum", "default", "examples"))
#: Keywords whose values are schemas by name, so a member is no keyword, even if it is called like one.
_MAP_KEYWORDS: Final = frozenset(
    (
        *("properties", "patternProperties", "definitions", "$defs"),
        *("dependencies", "dependentSchemas", "dependentRequired"),
    )
)
_DRAFT_04: Final = 4
_DRAFT_2019_09: Final = 2019


class ValueRole(Enum):
    """What a value of a text is."""

    SCHEMA = auto()
    SCHEMAS_BY_NAME = auto()
    DATA = auto()

    def below(self, name: str) -> ValueRole:
        """The role of a member."""
        if self is not ValueRole.SCHEMA:
            return ValueRole.SCHEMA if self is ValueRole.SCHEMAS_BY_NAME else ValueRole.DATA
        if name in _DATA_KEYWORDS:
            return ValueRole.DATA
        return ValueRole.SCHEMAS_BY_NAME if name in _MAP_KEYWORDS else ValueRole.SCHEMA


@dataclass(frozen=True, slots=True)
class _SchemaPlace:
    """Where an object is. text: the name of its text. resource: the schema around it that has a URI of its own."""

    text: str
    uri: str
    resource: Any
    draft: int


class JsonReferences:
    """The `$ref`s of a text and of those that it refers to. documents: the decoded texts by name, see `JsonText`.

    Objects are known by identity, so only those of the documents can be asked for. Cost: linear once.
    """

    def __init__(self, documents: Mapping[str, Any]) -> None:
        self.documents = documents
        self._places: dict[int, _SchemaPlace] = {}
        self._resources: dict[str, _SchemaPlace] = {}
        self._anchors: dict[tuple[int, str], Any] = {}
        self._schemas: list[tuple[str, Any]] = []
        for name, document in documents.items():
            draft = drafts.draft_of_document(drafts.ANY_DRAFT, document).number
            self._index(document, _SchemaPlace(name, _join(name, _id_of(document)), document, draft))

    def unresolved(self, text: str) -> Iterator[str]:
        """Every `$ref` in the schemas of a text that leads nowhere."""
        for name, schema in self._schemas:
            if name == text and isinstance(schema.get("$ref"), str) and self.find(schema) is None:
                yield schema["$ref"]

    def target(self, schema: Any) -> Any:
        """The schema to which the `$ref` of a schema leads; None where it has none, or one that leads nowhere."""
        found = self.find(schema)
        return None if found is None else found[1]

    def applies_siblings(self, schema: Any) -> bool:
        """Whether the keywords next to the `$ref` of a schema apply too, as they do from 2019-09 on."""
        place = self._places.get(id(schema))
        return place is not None and place.draft >= _DRAFT_2019_09

    def find(self, schema: Any) -> tuple[str, Any] | None:
        """The name of the text to which the `$ref` of a schema leads, and the schema there; None as in `target`."""
        place = self._places.get(id(schema))
        ref = schema.get("$ref") if isinstance(schema, dict) else None
        if place is None or not isinstance(ref, str):
            return None
        address, fragment = _split(ref)
        for text, resource in self._resources_at(address, place):
            target = self._at_fragment(resource, unquote(fragment))
            if isinstance(target, dict | bool):
                return text, target
        return None

    def _resources_at(self, address: str, place: _SchemaPlace) -> Iterator[tuple[str, Any]]:
        if not address:
            yield place.text, place.resource
            # Confluent's parser of older drafts reads a fragment from the root of the text, so such texts exist.
            yield place.text, self.documents[place.text]
            return
        own_id = _id_of(self.documents[place.text])
        candidates = dict.fromkeys((address, *(_join(base, address) for base in (place.text, place.uri, own_id))))
        for candidate in candidates:
            if candidate in self.documents:
                yield candidate, self.documents[candidate]
        for candidate in candidates:
            if candidate in self._resources:
                yield self._resources[candidate].text, self._resources[candidate].resource

    def _index(self, document: Any, place: _SchemaPlace) -> None:
        for uri in (place.uri, _id_of(document)):
            self._resources.setdefault(uri, place)
        pending = [(document, place, ValueRole.SCHEMA)]
        while pending:
            value, place, role = pending.pop()
            if isinstance(value, list):
                pending += [(item, place, role) for item in value]
            elif isinstance(value, dict):
                if role is ValueRole.SCHEMA:
                    place = self._enter(value, place)
                self._places[id(value)] = place
                pending += [(part, place, role.below(name)) for name, part in value.items()]

    def _enter(self, schema: dict[str, Any], place: _SchemaPlace) -> _SchemaPlace:
        """The place of a schema below a place; makes its identifiers known."""
        self._schemas.append((place.text, schema))
        id_keyword = "id" if place.draft == _DRAFT_04 else "$id"
        is_ignored = schema is place.resource or (place.draft < _DRAFT_2019_09 and "$ref" in schema)
        address = "" if is_ignored else _split(schema.get(id_keyword))[0]
        if address:
            place = replace(place, uri=_join(place.uri, address), resource=schema)
            self._resources.setdefault(place.uri, place)
        names = (schema.get(keyword) for keyword in ("$anchor", "$dynamicAnchor"))
        for anchor in (*names, *(_split(schema.get(keyword))[1] for keyword in ("$id", "id"))):
            if isinstance(anchor, str):
                self._anchors.setdefault((id(place.resource), anchor), schema)
        return place

    def _at_fragment(self, resource: Any, fragment: str) -> Any:
        if not fragment:
            return resource
        if not fragment.startswith("/"):
            return self._anchors.get((id(resource), fragment))
        value = resource
        for token in fragment[1:].split("/"):
            name = token.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and name in value:
                value = value[name]
            elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
                value = value[int(name)]
            else:
                return None
        return value


def _id_of(document: Any) -> str:
    """The identifier of a text, without a fragment; empty where it has none."""
    return _split((document.get("$id") or document.get("id")) if isinstance(document, dict) else None)[0]


def _split(uri: Any) -> tuple[str, str]:
    """A URI without its fragment, and the fragment; empty ones for what is no text."""
    if not isinstance(uri, str):
        return "", ""
    try:
        address, fragment = urldefrag(uri)
    except ValueError:
        return uri, ""
    return address, fragment


def _join(base: str, address: str) -> str:
    try:
        return urljoin(base, address)
    except ValueError:
        return address
