"""Strategies for Avro schemas, for changes of them that are common in practice, and for data of a schema."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
#: Valid defaults by type.
_DEFAULTS: dict[str, Any] = {
    **{
        "null": None,
        "boolean": True,
        "int": 1,
        "long": 2,
        "float": 0.5,
        "double": 1.5,
        "bytes": "\u00ff",
        "string": "s",
    },
    **{"array": [], "map": {}},
}
#: Types that often replace a primitive.
_PROMOTED = {
    **{"int": ["long", "float", "double"] * 3, "long": ["int", "float", "double"] * 3, "float": ["double"] * 6},
    **{"double": ["float"] * 6, "string": ["bytes"] * 6, "bytes": ["string"] * 6},
}
_FIELDS = ("a", "b", "c", "d")
_SYMBOLS = ("A", "B", "C")


class _Drawing:
    """Draws a schema; records which names are taken, and which can be referred to."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.defined: list[str] = []
        self.open: list[str] = []

    def schema(self, depth: int, named: bool = True) -> Any:
        kinds = [*PRIMITIVES, *(["array", "map", "union"] if depth else []), *(["record"] if depth and named else [])]
        kinds += ["enum", "fixed"] if named else []
        kinds += ["reference"] if named and self.defined else []
        return self.of_kind(self.draw(st.sampled_from(kinds)), depth)

    def of_kind(self, kind: str, depth: int) -> Any:
        match kind:
            case "array":
                return {"type": "array", "items": self.schema(depth - 1)}
            case "map":
                return {"type": "map", "values": self.schema(depth - 1)}
            case "union":
                return self.union(depth)
            case "record":
                return self.record(depth)
            case "enum":
                symbols = self.draw(st.lists(st.sampled_from(_SYMBOLS), min_size=1, unique=True))
                default = {"default": symbols[0]} if self.draw(st.booleans()) else {}
                return {"type": "enum", "name": self.name("E"), "symbols": symbols} | default
            case "fixed":
                return {"type": "fixed", "name": self.name("F"), "size": self.draw(st.integers(1, 3))}
            case "reference":
                return self.draw(st.sampled_from(self.defined))
        return {"type": kind, "x": 1} if self.draw(st.integers(0, 9)) == 0 else kind

    def name(self, prefix: str) -> str:
        found = f"{prefix}{len(self.defined) + len(self.open)}"
        self.defined.append(found)
        return found

    def union(self, depth: int) -> list[Any]:
        branches: list[Any] = []
        seen: set[str] = set()
        for _ in range(self.draw(st.integers(1, 4))):
            kind = self.draw(st.sampled_from([*PRIMITIVES, "array", "map", "record", "enum", "fixed", "reference"]))
            if kind in seen or (kind == "reference" and not self.defined):
                continue
            branch = self.of_kind(kind, depth - 1)
            label = branch if isinstance(branch, str) else branch.get("name", branch["type"])
            if label not in seen:
                seen |= {kind if kind in (*PRIMITIVES, "array", "map") else label, label}
                branches.append(branch)
        return branches or ["null"]

    def record(self, depth: int) -> dict[str, Any]:
        name = f"R{len(self.defined) + len(self.open)}"
        self.open.append(name)
        names = self.draw(st.lists(st.sampled_from(_FIELDS), unique=True, max_size=4))
        # A type inside itself occurs only in a union with null; otherwise no finite value would exist.
        fields = [{"name": field, "type": self.field_type(name, depth)} for field in names]
        self.open.remove(name)
        self.defined.append(name)
        for field in fields:
            if self.draw(st.booleans()):
                with_default(field)
        return {"type": "record", "name": name, "fields": fields}

    def field_type(self, record: str, depth: int) -> Any:
        return ["null", record] if self.draw(st.integers(0, 5)) == 0 else self.schema(depth - 1)


@st.composite
def schemas(draw: st.DrawFn) -> Any:
    """Draws a schema, most often a record."""
    drawing = _Drawing(draw)
    return drawing.record(3) if draw(st.integers(0, 4)) else drawing.schema(3)


@st.composite
def evolutions(draw: st.DrawFn) -> tuple[Any, Any]:
    """Draws an older schema, and a newer one with some changes that are common in practice."""
    older = draw(schemas())
    newer = copy.deepcopy([older])
    for _ in range(draw(st.integers(1, 4))):
        _change(draw, newer)
    return older, newer[0]


def with_default(field: dict[str, Any]) -> None:
    """Gives a field a default, if its type has a simple one."""
    first = field["type"][0] if isinstance(field["type"], list) else field["type"]
    if isinstance(first, dict) and first["type"] == "enum":
        field["default"] = first["symbols"][0]
    elif isinstance(first, dict) and first["type"] == "fixed":
        field["default"] = "\u0001" * first["size"]
    elif isinstance(kind := first["type"] if isinstance(first, dict) else first, str) and kind in _DEFAULTS:
        field["default"] = _DEFAULTS[kind]


def _change(draw: st.DrawFn, holder: list[Any]) -> None:
    """Makes one change at one place; the result may be an invalid schema."""
    places = list(_places(holder))
    where, key = draw(st.sampled_from(places))
    schema = where[key]
    kind = schema["type"] if isinstance(schema, dict) else "union" if isinstance(schema, list) else "name"
    match kind:
        case "record":
            _change_record(draw, schema)
        case "enum":
            choice = draw(st.sampled_from(["symbols", "default", "no default", "rename"]))
            if choice == "symbols":
                schema["symbols"] = draw(st.lists(st.sampled_from(_SYMBOLS), min_size=1, unique=True))
                schema.pop("default", None)
            elif choice == "default":
                schema["default"] = schema["symbols"][-1]
            elif choice == "no default":
                schema.pop("default", None)
            else:
                _rename(draw, schema)
        case "fixed":
            if draw(st.booleans()):
                schema["size"] += 1
            else:
                _rename(draw, schema)
        case "union":
            _change_union(draw, where, key, schema)
        case _:
            wrapped: list[Any] = [["null", schema], [schema, "string"]]
            where[key] = draw(st.sampled_from([*PRIMITIVES, *_PROMOTED.get(str(schema), ()), *wrapped]))


def _change_record(draw: st.DrawFn, record: dict[str, Any]) -> None:
    fields = record["fields"]
    choice = draw(st.sampled_from(["add", "add", "drop", "rename", "alias", "name", "default", "order"]))
    if choice == "add":
        field: dict[str, Any] = {
            "name": draw(st.sampled_from(("e", "f"))),
            "type": draw(st.sampled_from(["int", ["null", "string"]])),
        }
        if draw(st.booleans()):
            with_default(field)
        fields.append(field)
    elif choice == "name":
        _rename(draw, record)
    elif fields:
        field = draw(st.sampled_from(fields))
        if choice == "drop":
            fields.remove(field)
        elif choice == "default":
            with_default(field)
        elif choice == "order":
            fields.reverse()
        else:
            field.update(
                {"aliases": [field["name"]]} if choice == "alias" else {}, name=draw(st.sampled_from(("g", "h")))
            )


def _change_union(draw: st.DrawFn, where: Any, key: Any, union: list[Any]) -> None:
    choice = draw(st.sampled_from(["drop", "add", "one", "order"]))
    if choice == "drop" and len(union) > 1:
        union.pop(draw(st.integers(0, len(union) - 1)))
    elif choice == "add":
        union.append(draw(st.sampled_from(PRIMITIVES)))
    elif choice == "one":
        where[key] = union[-1]
    else:
        union.reverse()


def _rename(draw: st.DrawFn, named: dict[str, Any]) -> None:
    if draw(st.booleans()):
        named["aliases"] = [named["name"]]
    named["name"] = draw(st.sampled_from(("N", "M")))


def _places(holder: Any) -> Iterator[tuple[Any, Any]]:
    """Yields each place of a schema, as its container and the key in it."""
    for key, schema in list(enumerate(holder)):
        yield from _below(holder, key, schema)


def _below(where: Any, key: Any, schema: Any) -> Iterator[tuple[Any, Any]]:
    yield where, key
    if isinstance(schema, list):
        yield from _places(schema)
    elif isinstance(schema, dict):
        for member in ("items", "values"):
            if member in schema:
                yield from _below(schema, member, schema[member])
        for field in schema.get("fields", ()):
            yield from _below(field, "type", field["type"])


class Values:
    """Draws data for a schema."""

    def __init__(self, schema: Any) -> None:
        self._named: dict[str, Any] = {}
        self._collect(schema)

    def _collect(self, schema: Any) -> None:
        for where, key in _places([schema]):
            if isinstance(where[key], dict) and "name" in where[key]:
                self._named[where[key]["name"]] = where[key]

    def draw(self, draw: Callable[[st.SearchStrategy[Any]], Any], schema: Any, depth: int = 6) -> Any:
        """Draws a value of a schema, in the form that fastavro writes."""
        if isinstance(schema, list):
            # The null branch ends the recursion of types that contain themselves.
            branch = "null" if depth <= 0 and "null" in schema else draw(st.sampled_from(schema))
            named = branch if isinstance(branch, str) else branch.get("name", branch["type"])
            return (named, self.draw(draw, branch, depth - 1))
        if isinstance(schema, str):
            return self._simple(draw, schema) if schema in PRIMITIVES else self.draw(draw, self._named[schema], depth)
        match schema["type"]:
            case "record":
                return {field["name"]: self.draw(draw, field["type"], depth - 1) for field in schema["fields"]}
            case "array":
                return [self.draw(draw, schema["items"], depth - 1) for _ in range(draw(st.integers(0, 2)))]
            case "map":
                keys = draw(st.lists(st.sampled_from(("k", "l")), unique=True))
                return {key: self.draw(draw, schema["values"], depth - 1) for key in keys}
            case "enum":
                return draw(st.sampled_from(schema["symbols"]))
            case "fixed":
                return b"\x01" * schema["size"]
        return self._simple(draw, schema["type"])

    def _simple(self, draw: Callable[[st.SearchStrategy[Any]], Any], kind: str) -> Any:
        simple = {
            "null": st.none(),
            "boolean": st.booleans(),
            "int": st.integers(-(2**31), 2**31 - 1),
            "long": st.integers(-(2**63), 2**63 - 1),
            "float": st.floats(width=32, allow_nan=False),
            "double": st.floats(allow_nan=False),
            "bytes": st.just(b"ab"),
            "string": st.text(st.characters(codec="utf-8"), max_size=3),
        }
        return draw(simple[kind])


def text(document: Any) -> str:
    """Returns a document as JSON."""
    return json.dumps(document)
