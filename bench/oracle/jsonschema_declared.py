"""Whether a value of a JSON Schema has declared members only, said without the comparison's own words (SC-36).

A schema with alternatives declares members by each of them for itself, so one choice of alternatives has to declare all
members. A schema that declares none, by name or by a pattern, declares any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import jsonschema_rs

#: Choices of alternatives that are looked at for one value.
CHOICES: Final = 200


class Declared:
    """Answers for the values of one document."""

    def __init__(self, document: Any) -> None:
        self._definitions = document.get("$defs", {}) if isinstance(document, dict) else {}
        self._document = document
        self._validators: dict[int, Any] = {}

    def holds(self, value: Any) -> bool:
        """Whether all members of a value are declared, that the document allows."""
        return self._held([self._document], value)

    def _held(self, schemas: list[Any], value: Any) -> bool:
        if not isinstance(value, dict | list):
            return True
        return any(self._by(choice, value) for choice in islice(self._choices(schemas, [], value), CHOICES))

    def _choices(self, waiting: list[Any], held: list[dict[str, Any]], value: Any) -> Iterator[list[dict[str, Any]]]:
        """The schemas that hold for a value, for each choice of alternatives."""
        if not waiting:
            yield held
            return
        schema, *rest = waiting
        if not isinstance(schema, dict):
            yield from self._choices(rest, held, value)
            return
        more = [*schema.get("allOf", ())]
        if "$ref" in schema:
            more.append(self._definitions[schema["$ref"].rpartition("/")[2]])
        if "if" in schema:
            holds = self._valid(schema["if"], value)
            more += [schema["if"], schema.get("then", True)] if holds else [schema.get("else", True)]
        if isinstance(value, dict):
            more += [below for name, below in schema.get("dependentSchemas", {}).items() if name in value]
        choices: list[list[Any]] = [[]]
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                valid = [each for each in schema[keyword] if self._valid(each, value)]
                choices = [[*choice, each] for choice in choices for each in valid]
        for choice in choices:
            yield from self._choices([*more, *choice, *rest], [*held, schema], value)

    def _valid(self, schema: Any, value: Any) -> bool:
        if id(schema) not in self._validators:
            raw = {"$defs": self._definitions, "allOf": [schema]}
            self._validators[id(schema)] = jsonschema_rs.Draft202012Validator(raw)
        return bool(self._validators[id(schema)].is_valid(value))

    def _by(self, held: list[dict[str, Any]], value: Any) -> bool:
        if any("enum" in schema or "const" in schema for schema in held):
            return True  # listed in full
        if isinstance(value, list):
            return all(self._held(self._of_item(held, index), item) for index, item in enumerate(value))
        closed = any(
            below is not False
            for schema in held
            for keyword in ("properties", "patternProperties")
            for below in schema.get(keyword, {}).values()
        )
        required = _required(held)
        for name, item in value.items():
            below = self._of_member(held, name, item)
            if below is None and closed and name not in required:
                return False
            if not self._held(below or [], item):
                return False
        return True

    def _of_member(self, held: list[dict[str, Any]], name: str, item: Any) -> list[Any] | None:
        """The schemas that declare a member; None where none does."""
        found: list[Any] = []
        declared = False
        for schema in held:
            own = [below for key, below in schema.get("properties", {}).items() if key == name]
            own += [below for key, below in schema.get("patternProperties", {}).items() if re.search(key, name)]
            declared = declared or bool(own)
            rest = schema.get("additionalProperties", True)
            if not own and _says(rest):
                declared = True
                own = [rest]
            found += own
        for schema in held:
            rest = schema.get("unevaluatedProperties", True)
            if not declared and _says(rest) and self._valid(rest, item):
                return [rest]
        return found if declared else None

    def _of_item(self, held: list[dict[str, Any]], index: int) -> list[Any]:
        found: list[Any] = []
        for schema in held:
            prefix = schema.get("prefixItems", ())
            if index < len(prefix):
                found.append(prefix[index])
            elif "items" in schema:
                found.append(schema["items"])
        if found:
            return found
        return [schema["unevaluatedItems"] for schema in held if "unevaluatedItems" in schema]


def _required(held: list[dict[str, Any]]) -> set[str]:
    """The members that are declared by being needed, by themselves or by those that are declared."""
    found = {name for schema in held for name in schema.get("required", ())}
    size = -1
    while size != len(found):
        size = len(found)
        for schema in held:
            known = found | schema.get("properties", {}).keys()
            needed = schema.get("dependentRequired", {})
            found |= {other for name in known if name in needed for other in needed[name]}
    return found


def _says(schema: Any) -> bool:
    """Whether open content with this schema is declared: it says something of its members."""
    return isinstance(schema, dict) and bool(schema)
