"""Generates changes of a published document, and states with which readers each is compatible (SC-36).

Each change is small and can be made in documents of any project.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, Final, NamedTuple

import yaml

Json = dict[str, Any]
NAME: Final = "annals_member"


class Change(NamedTuple):
    """A document derived from a published one.

    allowed: contains `B` if the change is backward compatible, and `F` if it is forward compatible. rules: the rules
    that an incompatible change breaks, backward and forward.
    """

    what: str
    document: bytes
    allowed: str
    rules: tuple[str, str] = ("", "")


def changes(format: str, document: bytes) -> list[Change]:
    """All changes of a document."""
    return list(_KINDS[format.partition("/")[0].lower()](document.decode("utf-8-sig")))


def broken(format: str, document: bytes) -> bytes:
    """An invalid document: its last bracket is missing, or for OpenAPI a required member."""
    if format.startswith("OpenAPI"):
        return document.replace(b'"info"', b'"x-info"', 1).replace(b"\ninfo:", b"\nx-info:", 1)
    return document[: document.rindex(b"</" if format.startswith("XSD") else b"}")]


# -- Avro -------------------------------------------------------------------------------------------------------------


def _avro(text: str) -> Iterator[Change]:
    whole: Json = json.loads(text)
    assert whole["type"] in ("record", "error"), "records are changed"

    def fields(changed: list[Json]) -> bytes:
        return json.dumps(whole | {"fields": changed}).encode()

    *kept, last = whole["fields"]
    optional = {"name": NAME, "type": ["null", "string"], "default": None}
    yield Change("a field with a default", fields([*kept, last, optional]), "BF")
    missing = "reader-field-missing-default"
    yield Change("a field without one", fields([*kept, last, {"name": NAME, "type": "string"}]), "F", (missing, ""))
    allowed = "BF" if "default" in last else "B"
    yield Change("the last field removed", fields(kept), allowed, ("", missing))
    other = {name: value for name, value in last.items() if name != "default"}
    other |= {"type": {"type": "fixed", "name": "AnnalsFixed", "size": 3}}
    yield Change("the last field of another type", fields([*kept, other]), "", _other_type(last["type"]))
    if text.count(f'"{whole["name"]}"') == 1:  # a recursive schema would also need changes in its references
        yield Change("another name", json.dumps(whole | {"name": "AnnalsName"}).encode(), "", ("name-mismatch",) * 2)


def _other_type(type: Any) -> tuple[str, str]:
    """The rules that a change to the type `fixed` breaks: they differ by direction if the old type is a union."""
    return ("type-mismatch", "missing-union-branch") if isinstance(type, list) else ("type-mismatch",) * 2


# -- JSON Schema ------------------------------------------------------------------------------------------------------


def _json_schema(text: str) -> Iterator[Change]:
    whole: Json = json.loads(text)

    def with_members(**members: Any) -> bytes:
        changed_schema = deepcopy(whole)
        _root(changed_schema).update(members)
        return json.dumps(changed_schema).encode()

    root = _root(whole)
    properties, required = root.get("properties", {}), root.get("required", [])
    forward, unknown = ("F", "") if _open(root) else ("", _refusal(root))
    added = {"properties": properties | {NAME: {}}}
    yield Change("an optional member", with_members(**added), "B" + forward, ("", unknown))
    more = with_members(**added, required=[*required, NAME])
    yield Change("a required member", more, forward, ("reader-required", unknown))
    typed = next((name for name, one in properties.items() if isinstance(one, dict) and _typed(one)), None)
    if typed is not None:
        other = {"type": "number" if properties[typed]["type"] == "string" else "string"}
        changed = with_members(properties=properties | {typed: other})
        yield Change(f"{typed} of another type", changed, "", ("reader-type",) * 2)


def _typed(schema: Json) -> bool:
    """Whether a schema restricts its values to one type with an unlimited number of values."""
    return (
        schema.get("type") in ("string", "integer", "number", "array", "object")
        and not {"enum", "const"} & schema.keys()
    )


def _root(whole: Json) -> Json:
    """The main schema of the document, which may be one of its definitions."""
    found = whole
    while "$ref" in found and "properties" not in found:
        _, *steps = found["$ref"].split("/")
        found = whole
        for step in steps:
            found = found[step]
    return found


def _open(schema: Json) -> bool:
    """Whether a schema allows undeclared members with any value."""
    return all(schema.get(name, True) in (True, {}) for name in ("additionalProperties", "unevaluatedProperties"))


def _refusal(schema: Json) -> str:
    """The rule that undeclared members break: they are forbidden, or restricted to a type."""
    other = schema.get("additionalProperties", False)
    return "reader-type" if isinstance(other, dict) else "reader-property-refused"


# -- text -------------------------------------------------------------------------------------------------------------


def _protobuf(text: str) -> Iterator[Change]:
    label = "" if re.search(r'^(syntax = "proto3"|edition)', text, re.MULTILINE) else "optional "
    start = re.search(r"^\s*message \w+ \{$", text, re.MULTILINE)
    assert start, "a message is changed"
    grown = f"{text[: start.end()]} {label}string {NAME} = 991;{text[start.end() :]}"
    yield Change("a field", grown.encode(), "BF")
    field = re.search(r"^  (?:optional |required |repeated )?(\w+) \w+ = \d+;$", text, re.MULTILINE)
    if field is not None:
        removed = ("field-removed-not-reserved", "field-removed")
        yield Change("a field removed", (text[: field.start()] + text[field.end() :]).encode(), "", removed)
        other = "double" if field[1] != "double" else "string"
        retyped = text[: field.start(1)] + other + text[field.end(1) :]
        yield Change("a field of another type", retyped.encode(), "", ("field-type-changed",) * 2)


def _xsd(text: str) -> Iterator[Change]:
    end = re.search(r"</(\w+:)?schema>\s*$", text)
    assert end, "the end of a schema"
    prefix = end[1] or ""
    more = text[: end.start()] + f'<{prefix}element name="{NAME}"/>' + end[0]
    yield Change("a root element", more.encode(), "B", ("", "root-element-unknown"))
    place = re.search(rf"</{prefix}(?:sequence|choice)>(?=\s*</{prefix}complexType>)", text)
    if place is not None:
        for what, allowed, rules in (
            ("optional", "B", ("", "attribute-unknown")),
            ("required", "", ("attribute-required", "attribute-unknown")),
        ):
            attribute = f'<{prefix}attribute name="{NAME}" use="{what}"/>'
            changed = text[: place.end()] + attribute + text[place.end() :]
            yield Change(f"an {what} attribute", changed.encode(), allowed, rules)


def _graphql(text: str) -> Iterator[Change]:
    start = re.search(r"^type Query (?:implements .*)?\{$", text, re.MULTILINE)
    assert start, "the fields of Query are changed"
    more = f"{text[: start.end()]}\n  {NAME}: Int{text[start.end() :]}"
    yield Change("a field", more.encode(), "B", ("", "field-removed"))
    field = re.compile(r"^  (\w+): ([\w!\[\]]+)$", re.MULTILINE).search(text, start.end())
    if field is not None:
        renamed = text[: field.start(1)] + NAME + text[field.end(1) :]
        yield Change("a field under another name", renamed.encode(), "", ("field-removed",) * 2)
        retyped = text[: field.start(2)] + "Boolean" + text[field.end(2) :]
        yield Change("a field of another type", retyped.encode(), "", ("field-changed-kind",) * 2)


def _openapi(text: str) -> Iterator[Change]:
    whole: Json = yaml.safe_load(text) if text.lstrip()[0] != "{" else json.loads(text)
    paths: Json = whole["paths"]

    def changed(paths: Json) -> bytes:
        return json.dumps(whole | {"paths": paths}, default=str).encode()

    responses = {"200": {"description": "Words."}}
    yield Change("a path", changed(paths | {f"/{NAME}": {"get": {"responses": responses}}}), "B", ("", "path-removed"))
    *kept, _ = paths
    yield Change("the last path removed", changed({path: paths[path] for path in kept}), "F", ("path-removed", ""))


_KINDS: Final[dict[str, Callable[[str], Iterator[Change]]]] = {
    "avro": _avro,
    "jsonschema": _json_schema,
    "protobuf": _protobuf,
    "xsd": _xsd,
    "graphql": _graphql,
    "openapi": _openapi,
}
