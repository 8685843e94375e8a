"""From a decoded document to its schema, with every rule that a declaration has to keep.

Spec: Avro 1.8.2 to 1.12.0, "Schema Declaration" to "Aliases", "Logical Types".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from domain.formats.avro.defaults import Defaults
from domain.formats.avro.endless import endless
from domain.formats.avro.names import aliases, fullname, is_name, qualified
from domain.formats.avro.schema import NAMED, PRIMITIVES, Field, Schema, Type, Use, short, violation

_ORDERS: Final = ("ascending", "descending", "ignore")
#: Releases (1.x) from which on a rule is in the specification.
_ENUM_DEFAULTS: Final = 9
_ANY_BRANCH_DEFAULTS: Final = 12
_UNIQUE_ALIASES: Final = 12


def read(document: Any, release: int, source: bytes) -> Schema:
    """The schema that a JSON value declares under a release 1.x.

    Raises: Violation; RecursionError where it is nested more deeply than Python reads. Cost: linear.
    """
    reading = _Reading(release)
    root = reading.use(document, "", "")
    reading.finish()
    return Schema(tuple(reading.types), root, source)


class _Reading:
    """One pass over a document, depth first and left to right, as names have to be defined before they are used."""

    def __init__(self, release: int) -> None:
        self.release = release
        self.types: list[Type] = []
        self._names: dict[str, int] = {}
        self._primitives: dict[str, int] = {}
        self._aliases: list[tuple[str, int, str, Any]] = []
        self._defaults: dict[str, tuple[int, Any]] = {}
        self._kinds: dict[str, Callable[[dict[str, Any], str, str], int]] = {
            **{"record": self._record, "error": self._record, "enum": self._enum, "fixed": self._fixed},
            **{"array": self._array, "map": self._map},
        }

    def use(self, schema: Any, pointer: str, space: str) -> Use:
        """A schema in any of its three forms. space: the namespace around it."""
        if isinstance(schema, str):
            return Use(self._called(schema, pointer, schema, space), pointer)
        if isinstance(schema, list):
            return Use(self._union(schema, pointer, space), pointer)
        if isinstance(schema, dict):
            return Use(self._object(schema, pointer, space), pointer)
        raise violation("a schema is a string, an object or an array", pointer, schema)

    def finish(self) -> None:
        """Checks what can only be checked when all types are known."""
        if self.release >= _UNIQUE_ALIASES:
            self._aliases_are_unique()
        defaults = Defaults(self.types, any_branch=self.release >= _ANY_BRANCH_DEFAULTS)
        for pointer, (index, value) in self._defaults.items():
            defaults.check(index, value, f"{pointer}/default")
        if place := endless(self.types, self._defaults, defaults.chosen):
            text = "the default never ends: filling it in takes this default again"
            raise violation(text, f"{place}/default", self._defaults[place][1])

    def _add(self, found: Type) -> int:
        self.types.append(found)
        return len(self.types) - 1

    def _primitive(self, kind: str) -> int:
        if kind not in self._primitives:
            self._primitives[kind] = self._add(Type(kind))
        return self._primitives[kind]

    def _called(self, name: str, pointer: str, shown: Any, space: str) -> int:
        if name in PRIMITIVES:
            return self._primitive(name)
        full = qualified(name, space)
        if full not in self._names:
            text = f'"{short(name)}" is neither a primitive type nor a type that is defined before this place'
            raise violation(text, pointer, shown)
        return self._names[full]

    def _object(self, schema: dict[str, Any], pointer: str, space: str) -> int:
        kind = schema.get("type")
        if not isinstance(kind, str):
            hint = "; this is a protocol" if "protocol" in schema else ""
            raise violation(f'a schema that is an object names its type as a string in "type"{hint}', pointer, schema)
        if kind in self._kinds:
            return self._kinds[kind](schema, pointer, space)
        if kind == "bytes" and (decimal := _decimal(schema)):
            return self._add(Type(kind, decimal=decimal))
        if kind in PRIMITIVES:
            return self._primitive(kind)
        return self._called(kind, f"{pointer}/type", kind, space)

    def _define(self, kind: str, schema: dict[str, Any], pointer: str, space: str) -> tuple[int, str, tuple[str, ...]]:
        """The index, the fullname and the aliases of a type that is being defined; what it holds comes later."""
        name = fullname(schema, pointer, space)
        if name in self._names:
            raise violation(f'the type "{short(name)}" is defined twice', f"{pointer}/name", schema["name"])
        index = self._names[name] = self._add(Type(kind, name))
        others = tuple(qualified(alias, _space(name)) for alias in aliases(schema, pointer))
        self._aliases += [(alias, index, pointer, schema["aliases"]) for alias in others]
        return index, name, others

    def _record(self, schema: dict[str, Any], pointer: str, space: str) -> int:
        index, name, others = self._define("record", schema, pointer, space)
        declared = schema.get("fields")
        if not isinstance(declared, list):
            raise violation(f'the record {short(name)} needs "fields", which is an array', pointer, schema)
        fields: dict[str, Field] = {}
        inner = _space(name)
        for at, item in enumerate(declared):
            field = self._field(item, f"{pointer}/fields/{at}", inner)
            if field.name in fields:
                raise violation(f'the record {short(name)} has two fields "{short(field.name)}"', field.pointer, item)
            fields[field.name] = field
        if self.release >= _UNIQUE_ALIASES:
            _field_aliases_are_unique(fields, declared)
        self.types[index] = Type("record", name, others, fields=tuple(fields.values()))
        return index

    def _field(self, field: Any, pointer: str, space: str) -> Field:
        if not isinstance(field, dict):
            raise violation("a field is an object", pointer, field)
        name = field.get("name")
        if not is_name(name):
            text = "a field needs a name of letters, digits and _, which does not begin with a digit"
            raise violation(text, pointer, field)
        if "type" not in field:
            raise violation(f'the field "{short(name)}" needs a type', pointer, field)
        if field.get("order", "ascending") not in _ORDERS:
            raise violation(f"the order of a field is one of {', '.join(_ORDERS)}", f"{pointer}/order", field["order"])
        use = self.use(field["type"], f"{pointer}/type", space)
        if "default" in field:
            self._defaults[pointer] = (use.type, field["default"])
        return Field(name, aliases(field, pointer), use, "default" not in field, pointer)

    def _enum(self, schema: dict[str, Any], pointer: str, space: str) -> int:
        index, name, others = self._define("enum", schema, pointer, space)
        symbols = schema.get("symbols")
        if not isinstance(symbols, list):
            raise violation(f'the enum {short(name)} needs "symbols", which is an array', pointer, schema)
        seen: set[str] = set()
        for at, symbol in enumerate(symbols):
            if not is_name(symbol):
                text = "a symbol is a string of letters, digits and _, which does not begin with a digit"
                raise violation(text, f"{pointer}/symbols/{at}", symbol)
            if symbol in seen:
                raise violation(
                    f'the enum {short(name)} has the symbol "{short(symbol)}" twice', f"{pointer}/symbols/{at}", symbol
                )
            seen.add(symbol)
        self.types[index] = Type(
            "enum", name, others, symbols=tuple(symbols), default=self._enum_default(schema, pointer, seen)
        )
        return index

    def _enum_default(self, schema: dict[str, Any], pointer: str, symbols: set[str]) -> str | None:
        if self.release < _ENUM_DEFAULTS or "default" not in schema:
            return None  # before 1.9 it is one more attribute that means nothing
        default = schema["default"]
        if not isinstance(default, str) or default not in symbols:
            raise violation("the default of an enum is one of its symbols", f"{pointer}/default", default)
        return default

    def _fixed(self, schema: dict[str, Any], pointer: str, space: str) -> int:
        index, name, others = self._define("fixed", schema, pointer, space)
        size = schema.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise violation(f'the fixed {short(name)} needs "size", a number of bytes', pointer, schema)
        self.types[index] = Type("fixed", name, others, size=size, decimal=_decimal(schema))
        return index

    def _array(self, schema: dict[str, Any], pointer: str, space: str) -> int:
        return self._holding("array", "items", schema, pointer, space)

    def _map(self, schema: dict[str, Any], pointer: str, space: str) -> int:
        return self._holding("map", "values", schema, pointer, space)

    def _holding(self, kind: str, member: str, schema: dict[str, Any], pointer: str, space: str) -> int:
        if member not in schema:
            raise violation(f'a type of kind {kind} needs "{member}"', pointer, schema)
        return self._add(Type(kind, parts=(self.use(schema[member], f"{pointer}/{member}", space),)))

    def _union(self, branches: list[Any], pointer: str, space: str) -> int:
        uses: list[Use] = []
        seen: set[tuple[str, str]] = set()
        for at, branch in enumerate(branches):
            if isinstance(branch, list):
                raise violation("a union may not stand directly in a union", f"{pointer}/{at}", branch)
            use = self.use(branch, f"{pointer}/{at}", space)
            kind, name = self._identity(use)
            if (kind, name) in seen:
                raise violation(f"a union may have one {short(name or kind)} only", use.pointer, branch)
            seen.add((kind, name))
            uses.append(use)
        return self._add(Type("union", parts=tuple(uses)))

    def _identity(self, use: Use) -> tuple[str, str]:
        """What makes a branch of a union different from others; two types of one name are one, whatever their kinds."""
        found = self.types[use.type]
        return ("", found.name) if found.kind in NAMED else (found.kind, "")

    def _aliases_are_unique(self) -> None:
        owners = dict(self._names)
        for alias, index, pointer, written in self._aliases:
            if owners.setdefault(alias, index) != index:
                raise violation(f'"{short(alias)}" names two types', f"{pointer}/aliases", written)


def _space(name: str) -> str:
    return name.rpartition(".")[0]


def _field_aliases_are_unique(fields: dict[str, Field], declared: list[Any]) -> None:
    owners = {name: name for name in fields}
    for at, field in enumerate(fields.values()):
        for alias in field.aliases:
            if owners.setdefault(alias, field.name) != field.name:
                text = f'"{short(alias)}" names two fields, "{short(owners[alias])}" and "{short(field.name)}"'
                raise violation(text, f"{field.pointer}/aliases", declared[at]["aliases"])


def _decimal(schema: dict[str, Any]) -> tuple[int, int] | None:
    """Precision and scale; None where the logical type is another or is not valid, because then it is to be ignored."""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if schema.get("logicalType") != "decimal" or not isinstance(precision, int) or not isinstance(scale, int):
        return None
    most = math.floor((8 * schema["size"] - 1) * math.log10(2)) if schema["type"] == "fixed" else precision
    if isinstance(precision, bool) or isinstance(scale, bool) or not 0 <= scale <= precision <= most or precision == 0:
        return None
    return precision, scale
