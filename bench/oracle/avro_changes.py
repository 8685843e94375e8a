"""Changes of an Avro schema in one place or a few, as people make them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from random import Random
from typing import Any, Final

from bench.oracle.avro_schemas import LOGICAL, PRIMITIVES, SYMBOLS, label, with_default

#: What each primitive is often changed into.
PROMOTED: Final = {
    **{"int": ("long", "float", "double"), "long": ("float", "double", "int"), "float": ("double",)},
    **{"double": ("float",), "string": ("bytes",), "bytes": ("string",)},
}


def changed(schema: Any, random: Random) -> Any:
    """A copy with one to three changes, which may leave a document that is no schema any more."""
    holder = [copy.deepcopy(schema)]
    for _ in range(random.choice([1, 1, 2, 3])):
        _change(random, *random.choice(list(places(holder))))
    return holder[0]


def places(holder: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Every place of a schema, as what holds it and the key there."""
    for key, schema in list(enumerate(holder)):
        yield from _below(holder, key, schema)


def _below(where: Any, key: Any, schema: Any) -> Iterator[tuple[Any, Any]]:
    yield where, key
    if isinstance(schema, list):
        yield from places(schema)
    elif isinstance(schema, dict):
        for member in ("items", "values"):
            if member in schema:
                yield from _below(schema, member, schema[member])
        for field in schema.get("fields", ()):
            yield from _below(field, "type", field["type"])


def _change(random: Random, where: Any, key: Any) -> None:
    schema = where[key]
    match schema["type"] if isinstance(schema, dict) else "union" if isinstance(schema, list) else "name":
        case "record":
            _record(random, schema)
        case "enum":
            _enum(random, schema)
        case "fixed":
            if random.random() < 0.4:
                schema["size"] += 1
            else:
                _rename(random, schema)
        case "union":
            _union(random, where, key, schema)
        case "bytes" if schema.get("logicalType") == "decimal":
            schema["precision"] = max(1, schema["precision"] + random.choice([1, 1, -1]))
            schema["scale"] = min(schema["precision"], schema["scale"] + random.choice([0, 0, 1]))
        case _:
            plain = schema if isinstance(schema, str) else schema["type"] if isinstance(schema["type"], str) else ""
            logical = [{"type": kind, "logicalType": name} for name, kind in LOGICAL.items() if kind == plain]
            wrapped: list[Any] = [["null", schema], [schema, "null"], [schema, "string"], plain or schema]
            where[key] = random.choice([random.choice(PRIMITIVES), *PROMOTED.get(plain, ()) * 2, *wrapped, *logical])


def _enum(random: Random, schema: dict[str, Any]) -> None:
    match random.choice(["add", "drop", "default", "no default", "rename", "order"]):
        case "add":
            schema["symbols"] = [*dict.fromkeys([*schema["symbols"], random.choice(SYMBOLS)])]
        case "drop" if len(schema["symbols"]) > 1:
            gone = schema["symbols"].pop()
            if schema.get("default") == gone:
                del schema["default"]
        case "default":
            schema["default"] = schema["symbols"][-1]
        case "no default":
            schema.pop("default", None)
        case "rename":
            _rename(random, schema)
        case _:
            schema["symbols"].reverse()


def _record(random: Random, record: dict[str, Any]) -> None:
    fields = record["fields"]
    choice = random.choice(["add", "add", "drop", "drop", "rename", "alias", "name", "default", "default", "order"])
    if choice == "add":
        kinds: list[Any] = ["int", "string", ["null", "string"], {"type": "array", "items": "int"}]
        field = {"name": random.choice("efab"), "type": random.choice(kinds)}
        if random.random() < 0.7:
            with_default(field)
        if field["name"] not in {each["name"] for each in fields}:
            fields.insert(random.randint(0, len(fields)), field)
    elif choice == "name":
        _rename(random, record)
    elif fields:
        field = random.choice(fields)
        match choice:
            case "drop":
                fields.remove(field)
            case "default":
                with_default(field) if "default" not in field or random.random() < 0.5 else field.pop("default")
            case "order":
                fields.reverse()
            case _:
                if choice == "alias":
                    field["aliases"] = [field["name"]]
                field["name"] = random.choice("ghab")


def _union(random: Random, where: Any, key: Any, union: list[Any]) -> None:
    choice = random.choice(["drop", "add", "add", "one", "order"])
    if choice == "drop" and len(union) > 1:
        union.pop(random.randrange(len(union)))
    elif choice == "add":
        added = random.choice(PRIMITIVES)
        if added not in map(label, union):
            union.insert(random.randint(0, len(union)), added)
    elif choice == "one":
        where[key] = random.choice(union)
    else:
        union.reverse()


def _rename(random: Random, named: dict[str, Any]) -> None:
    if random.random() < 0.6:
        named["aliases"] = [named["name"]]
    named["name"] = random.choice(["N", "M", "n.N", named["name"].rpartition(".")[2], f"m.{named['name']}"])
