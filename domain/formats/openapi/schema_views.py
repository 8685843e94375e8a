"""The schemas of a document as JSON Schema compares them: as they hold for requests, or for responses.

Versions 2.0 and 3.0 have a schema language of their own, which is draft-04 with `nullable`; later ones have 2020-12.
Members that only responses have are not required in requests, and the other way round.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from annals.domain.formats.jsonschema.drafts import JsonSchemaDraft, draft_of_format
from annals.domain.formats.jsonschema.graph import NodeBuilder
from annals.domain.formats.jsonschema.node import SchemaNode
from annals.domain.formats.openapi.operations import OperationPlace
from annals.domain.values.json_pointer import split_pointer


class Direction(StrEnum):
    """Which way data goes. The values are names for texts."""

    REQUEST = "request"
    RESPONSE = "response"


#: The keyword of members that the other direction has.
_ABSENT_MEMBERS: Final = {Direction.REQUEST: "readOnly", Direction.RESPONSE: "writeOnly"}
_OLD_DRAFT: Final = "JsonSchema/draft-04"
_NEW_DRAFT: Final = "JsonSchema/draft/2020-12"
#: Not a place in a document.
ANY_POINTER: Final = "/any"


class SchemaView:
    """The schemas of a document in one direction, as nodes."""

    def __init__(self, document: Mapping[str, Any], direction: Direction) -> None:
        self._source = document
        self._absent = _ABSENT_MEMBERS[direction]
        self._is_old = "swagger" in document or str(document.get("openapi")).startswith("3.0")
        self._document = self._converted(document)
        self._nodes = NodeBuilder(self._document, self._draft, json.dumps(document).encode())

    @property
    def size(self) -> int:
        """The number of nodes so far."""
        return len(self._nodes.nodes)

    def node(self, place: OperationPlace) -> SchemaNode:
        """The schema at a place. Raises: InvalidDocument for a reference that leads nowhere."""
        value: Any = self._document
        for step in split_pointer(place.pointer):
            value = value[int(step)] if isinstance(value, list) else value[step]
        if self._is_old and "in" in value:  # a parameter of version 2.0, which has other members too
            value = self._converted(place.value)
        return self._nodes.complete(place.pointer, value if isinstance(value, dict | bool) else {})

    def any_value(self) -> SchemaNode:
        """A schema that allows all values."""
        return self._nodes.complete(ANY_POINTER, True)

    @property
    def _draft(self) -> JsonSchemaDraft:
        return draft_of_format(_OLD_DRAFT if self._is_old else _NEW_DRAFT)

    def _converted(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._converted(item) for item in value]
        if not isinstance(value, dict):
            return value
        members = {name: self._converted(member) for name, member in value.items()}
        if self._is_old:
            _convert_type(members)
        properties, required = value.get("properties"), value.get("required")
        if isinstance(properties, dict) and isinstance(required, list):
            members["required"] = [name for name in required if not self._is_absent(properties.get(name))]
            if not members["required"]:
                del members["required"]
        return members

    def _is_absent(self, schema: Any) -> bool:
        """Whether a member is not in data of this direction."""
        if isinstance(schema, dict) and isinstance(reference := schema.get("$ref"), str) and reference.startswith("#/"):
            target: Any = self._source
            for step in split_pointer(reference[1:]):
                target = target.get(step) if isinstance(target, dict) else None
            schema = {**target, **schema} if isinstance(target, dict) else schema
        return isinstance(schema, dict) and schema.get(self._absent) is True


def _convert_type(members: dict[str, Any]) -> None:
    """Writes `nullable` and `file` as draft-04 does."""
    type = members.get("type")
    if type == "file":
        del members["type"]
    elif isinstance(type, str) and members.get("nullable") is True:
        members["type"] = [type, "null"]
        if isinstance(members.get("enum"), list) and None not in members["enum"]:
            members["enum"] = [*members["enum"], None]
