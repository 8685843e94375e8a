"""Generated Avro schemas, with names, defaults, aliases and logical types."""

from __future__ import annotations

from random import Random
from typing import Any, Final

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
FIELDS: Final = ("a", "b", "c", "d")
SYMBOLS: Final = ("A", "B", "C", "D")
#: Types of which a logical type may be one, by its name.
LOGICAL: Final = {
    "date": "int",
    "time-millis": "int",
    "timestamp-millis": "long",
    "timestamp-micros": "long",
    "uuid": "string",
}


class Drawing:
    """A schema while it is made: which names are taken, and which can be referred to."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.count = 0
        self.defined: list[str] = []

    def schema(self, depth: int) -> Any:
        kinds = [*PRIMITIVES, "logical", "decimal", "enum", "fixed", *(["reference"] if self.defined else [])]
        kinds += ["array", "map", "union", "union", "record", "record"] if depth > 0 else []
        return self.of_kind(self.random.choice(kinds), depth)

    def of_kind(self, kind: str, depth: int) -> Any:
        random = self.random
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
                symbols = random.sample(SYMBOLS, random.randint(1, 3))
                default = {"default": random.choice(symbols)} if random.random() < 0.4 else {}
                return {"type": "enum", "name": self.name("E"), "symbols": symbols} | default
            case "fixed":
                return {"type": "fixed", "name": self.name("F"), "size": random.randint(1, 3)}
            case "reference":
                return random.choice(self.defined)
            case "logical":
                name = random.choice(list(LOGICAL))
                return {"type": LOGICAL[name], "logicalType": name}
            case "decimal":
                return {"type": "bytes", "logicalType": "decimal", "precision": random.randint(3, 6), "scale": 2}
        return {"type": kind, "x": 1} if random.random() < 0.1 else kind

    def name(self, prefix: str) -> str:
        self.count += 1
        found = f"{self.random.choice(['', '', 'n.'])}{prefix}{self.count}"
        self.defined.append(found)
        return found

    def union(self, depth: int) -> list[Any]:
        branches: dict[str, Any] = {}
        for _ in range(self.random.randint(1, 4)):
            kinds = [*PRIMITIVES, "array", "map", "record", "enum", "fixed", *(["reference"] if self.defined else [])]
            branch = self.of_kind(self.random.choice(kinds), depth - 1)
            branches.setdefault(label(branch), branch)
        return list(branches.values())

    def record(self, depth: int) -> dict[str, Any]:
        random = self.random
        self.count += 1
        name = f"{random.choice(['', '', 'n.'])}R{self.count}"
        names = random.sample(FIELDS, random.randint(0, 4))
        fields = [{"name": each, "type": self.field_type(name, depth)} for each in names]
        self.defined.append(name)
        for field in fields:
            if random.random() < 0.5:
                with_default(field)
        return {"type": "record", "name": name, "fields": fields}

    def field_type(self, record: str, depth: int) -> Any:
        # A record is referred to from within by a union with null only: all else would never end.
        return ["null", record] if self.random.random() < 0.15 else self.schema(depth - 1)


def document(random: Random) -> Any:
    """A schema, most often a record."""
    drawing = Drawing(random)
    return drawing.record(3) if random.random() < 0.8 else drawing.schema(3)


def label(branch: Any) -> str:
    """What no two branches of a union may share."""
    if isinstance(branch, dict):
        return str(branch.get("name", branch["type"]))
    return branch if isinstance(branch, str) else "union"


_DEFAULTS: Final[dict[str, Any]] = {
    **{"null": None, "boolean": True, "int": 1, "long": 2, "float": 0.5, "double": 1.5, "bytes": "\u00ff"},
    **{"string": "s", "array": [], "map": {}},
}


def with_default(field: dict[str, Any]) -> None:
    """Gives a field a default, where there is a simple one."""
    first = field["type"][0] if isinstance(field["type"], list) else field["type"]
    kind = first["type"] if isinstance(first, dict) else first
    if isinstance(first, dict) and kind == "enum":
        field["default"] = first["symbols"][0]
    elif isinstance(first, dict) and kind == "fixed":
        field["default"] = "\u0001" * first["size"]
    elif isinstance(kind, str) and kind in _DEFAULTS and not (isinstance(first, dict) and "logicalType" in first):
        field["default"] = _DEFAULTS[kind]
