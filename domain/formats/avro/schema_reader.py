"""Reads a schema from a decoded document, and checks all rules for declarations.

Spec: Avro 1.8.2 to 1.12.0, "Schema Declaration" to "Aliases", "Logical Types".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeGuard

from annals.domain.formats.avro.defaults import DefaultChecker
from annals.domain.formats.avro.endless_defaults import find_endless_default
from annals.domain.formats.avro.names import aliases, fullname, is_name, qualify_name
from annals.domain.formats.avro.schema import (
    NAMED_TYPES,
    PRIMITIVE_TYPES,
    TYPES_WITHOUT_DETAILS,
    AvroSchema,
    AvroType,
    RecordField,
    TypeReference,
    invalid_document,
    shorten_name,
)

_FIELD_ORDERS: Final = ("ascending", "descending", "ignore")


class ReaderRules(NamedTuple):
    """The rules of a reader. any_branch_defaults: a default of a union may be a value of any branch, not of the first
    only. checks_names: of types, fields and symbols.
    """

    has_enum_defaults: bool = True
    any_branch_defaults: bool = True
    unique_aliases: bool = True
    checks_names: bool = True
    checks_defaults: bool = True


def rules_of_release(release: int) -> ReaderRules:
    """The rules of release 1.x of the specification."""
    return ReaderRules(has_enum_defaults=release >= 9, any_branch_defaults=release >= 12, unique_aliases=release >= 12)


def read_schema(document: Any, rules: ReaderRules, source: bytes) -> AvroSchema:
    """The schema in a JSON value.

    Raises: InvalidDocument; RecursionError for deeper nesting than Python supports. Cost: linear.
    """
    reader = _SchemaReader(rules)
    root = reader.read_type(document, "", "")
    reader.finish()
    return AvroSchema(tuple(reader.types), root, source)


class _SchemaReader:
    """One pass over a document, depth first and left to right, because names must be defined before their use."""

    def __init__(self, rules: ReaderRules) -> None:
        self._rules = rules
        self.types: list[AvroType] = []
        self._names: dict[str, int] = {}
        self._primitives: dict[str, int] = {}
        self._aliases: list[tuple[str, int, str, Any]] = []
        self._defaults: dict[str, tuple[int, Any]] = {}

    def read_type(self, schema: Any, pointer: str, namespace: str) -> TypeReference:
        """A reference to the schema in any of its three forms. namespace: the enclosing namespace."""
        if isinstance(schema, str):
            return TypeReference(self._named_type(schema, pointer, schema, namespace), pointer)
        if isinstance(schema, list):
            return TypeReference(self._read_union(schema, pointer, namespace), pointer)
        if isinstance(schema, dict):
            return TypeReference(self._read_object(schema, pointer, namespace), pointer)
        raise invalid_document("a schema has to be a string, an object or an array", pointer, schema)

    def finish(self) -> None:
        """Runs the checks that need all types."""
        if self._rules.unique_aliases:
            self._aliases_are_unique()
        if self._rules.checks_defaults:
            self._defaults_are_values()

    def _defaults_are_values(self) -> None:
        defaults = DefaultChecker(self.types, any_branch=self._rules.any_branch_defaults)
        for pointer, (index, value) in self._defaults.items():
            defaults.check(index, value, f"{pointer}/default")
        if endless_pointer := find_endless_default(self.types, self._defaults, defaults.branch_of):
            text = "the default never ends, because it contains itself"
            raise invalid_document(text, f"{endless_pointer}/default", self._defaults[endless_pointer][1])

    def _add(self, avro_type: AvroType) -> int:
        self.types.append(avro_type)
        return len(self.types) - 1

    def _primitive(self, kind: str) -> int:
        if kind not in self._primitives:
            self._primitives[kind] = self._add(AvroType(kind))
        return self._primitives[kind]

    def _named_type(self, name: str, pointer: str, shown_value: Any, namespace: str) -> int:
        if name in PRIMITIVE_TYPES:
            return self._primitive(name)
        full_name = qualify_name(name, namespace)
        if full_name not in self._names:
            text = f'"{shorten_name(name)}" is neither a primitive type nor a type that is defined before this place'
            raise invalid_document(text, pointer, shown_value)
        return self._names[full_name]

    def _read_object(self, schema: dict[str, Any], pointer: str, namespace: str) -> int:
        kind = schema.get("type")
        if not isinstance(kind, str):
            hint = "; this is a protocol" if "protocol" in schema else ""
            raise invalid_document(
                f'a schema that is an object needs its type as a string in "type"{hint}', pointer, schema
            )
        if read_kind := _KIND_READERS.get(kind):
            return read_kind(self, schema, pointer, namespace)
        if kind == "bytes" and (decimal := _parse_decimal(schema)):
            return self._add(AvroType(kind, decimal=decimal))
        if kind in PRIMITIVE_TYPES:
            return self._primitive(kind)
        return self._named_type(kind, f"{pointer}/type", kind, namespace)

    def _define(
        self, kind: str, schema: dict[str, Any], pointer: str, namespace: str
    ) -> tuple[int, str, tuple[str, ...]]:
        """The index, the fullname and the aliases of a newly defined type; its content is read later."""
        name = fullname(schema, pointer, namespace, checks_syntax=self._rules.checks_names)
        if name in self._names:
            raise invalid_document(
                f'the type "{shorten_name(name)}" is defined twice', f"{pointer}/name", schema["name"]
            )
        index = self._names[name] = self._add(AvroType(kind, name))
        qualified_aliases = tuple(qualify_name(alias, _namespace_of(name)) for alias in aliases(schema, pointer))
        self._aliases += [(alias, index, pointer, schema["aliases"]) for alias in qualified_aliases]
        return index, name, qualified_aliases

    def _read_record(self, schema: dict[str, Any], pointer: str, namespace: str) -> int:
        index, name, qualified_aliases = self._define("record", schema, pointer, namespace)
        declared = schema.get("fields")
        if not isinstance(declared, list):
            raise invalid_document(f'the record {shorten_name(name)} needs "fields", an array', pointer, schema)
        fields: dict[str, RecordField] = {}
        inner_namespace = _namespace_of(name)
        for position, item in enumerate(declared):
            field = self._read_field(item, f"{pointer}/fields/{position}", inner_namespace)
            if field.name in fields:
                raise invalid_document(
                    f'the record {shorten_name(name)} has two fields "{shorten_name(field.name)}"', field.pointer, item
                )
            fields[field.name] = field
        if self._rules.unique_aliases:
            _field_aliases_are_unique(fields, declared)
        self.types[index] = AvroType("record", name, qualified_aliases, fields=tuple(fields.values()))
        return index

    def _read_field(self, field: Any, pointer: str, namespace: str) -> RecordField:
        if not isinstance(field, dict):
            raise invalid_document("a field has to be an object", pointer, field)
        name = field.get("name")
        if not self._is_name(name):
            text = "a field needs a name of letters, digits and _, which does not begin with a digit"
            raise invalid_document(text, pointer, field)
        if "type" not in field:
            raise invalid_document(f'the field "{shorten_name(name)}" needs a type', pointer, field)
        if field.get("order", "ascending") not in _FIELD_ORDERS:
            raise invalid_document(
                f"the order of a field has to be one of {', '.join(_FIELD_ORDERS)}", f"{pointer}/order", field["order"]
            )
        type_reference = self.read_type(field["type"], f"{pointer}/type", namespace)
        if "default" in field:
            self._defaults[pointer] = (type_reference.type, field["default"])
        return RecordField(name, aliases(field, pointer), type_reference, "default" not in field, pointer)

    def _read_enum(self, schema: dict[str, Any], pointer: str, namespace: str) -> int:
        index, name, qualified_aliases = self._define("enum", schema, pointer, namespace)
        symbols = schema.get("symbols")
        if not isinstance(symbols, list):
            raise invalid_document(f'the enum {shorten_name(name)} needs "symbols", an array', pointer, schema)
        seen: set[str] = set()
        for position, symbol in enumerate(symbols):
            if not self._is_name(symbol):
                text = "a symbol has to be a string of letters, digits and _, which does not begin with a digit"
                raise invalid_document(text, f"{pointer}/symbols/{position}", symbol)
            if symbol in seen:
                raise invalid_document(
                    f'the enum {shorten_name(name)} has the symbol "{shorten_name(symbol)}" twice',
                    f"{pointer}/symbols/{position}",
                    symbol,
                )
            seen.add(symbol)
        self.types[index] = AvroType(
            "enum", name, qualified_aliases, symbols=tuple(symbols), default=self._enum_default(schema, pointer, seen)
        )
        return index

    def _enum_default(self, schema: dict[str, Any], pointer: str, symbols: set[str]) -> str | None:
        if not self._rules.has_enum_defaults or "default" not in schema:
            return None  # before 1.9, `default` is an unknown attribute without meaning
        default = schema["default"]
        if not isinstance(default, str) or (default not in symbols and self._rules.checks_defaults):
            raise invalid_document("the default of an enum has to be one of its symbols", f"{pointer}/default", default)
        return default

    def _is_name(self, text: Any) -> TypeGuard[str]:
        return is_name(text) if self._rules.checks_names else isinstance(text, str)

    def _read_fixed(self, schema: dict[str, Any], pointer: str, namespace: str) -> int:
        index, name, qualified_aliases = self._define("fixed", schema, pointer, namespace)
        size = schema.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise invalid_document(f'the fixed {shorten_name(name)} needs "size", a number of bytes', pointer, schema)
        self.types[index] = AvroType("fixed", name, qualified_aliases, size=size, decimal=_parse_decimal(schema))
        return index

    def _read_container(self, schema: dict[str, Any], pointer: str, namespace: str) -> int:
        member = "items" if schema["type"] == "array" else "values"
        if member not in schema:
            raise invalid_document(f'a type of kind {schema["type"]} needs "{member}"', pointer, schema)
        return self._add(
            AvroType(schema["type"], parts=(self.read_type(schema[member], f"{pointer}/{member}", namespace),))
        )

    def _read_union(self, branches: list[Any], pointer: str, namespace: str) -> int:
        references: list[TypeReference] = []
        seen: set[tuple[str, str]] = set()
        for position, branch in enumerate(branches):
            if isinstance(branch, list):
                raise invalid_document("a union may not be directly in a union", f"{pointer}/{position}", branch)
            reference = self.read_type(branch, f"{pointer}/{position}", namespace)
            kind, name = self._branch_identity(reference)
            if (kind, name) in seen:
                raise invalid_document(
                    f"a union may have one {shorten_name(name or kind)} only", reference.pointer, branch
                )
            seen.add((kind, name))
            references.append(reference)
        kinds = frozenset(self.types[reference.type].kind for reference in references)
        plain_kinds = kinds if kinds <= TYPES_WITHOUT_DETAILS else None
        return self._add(AvroType("union", parts=tuple(references), plain_kinds=plain_kinds))

    def _branch_identity(self, reference: TypeReference) -> tuple[str, str]:
        """The identity of a union branch. Two named types with one name are equal, even of different kinds."""
        avro_type = self.types[reference.type]
        return ("", avro_type.name) if avro_type.kind in NAMED_TYPES else (avro_type.kind, "")

    def _aliases_are_unique(self) -> None:
        owners = dict(self._names)
        for alias, index, pointer, alias_member in self._aliases:
            if owners.setdefault(alias, index) != index:
                raise invalid_document(f'"{shorten_name(alias)}" names two types', f"{pointer}/aliases", alias_member)


#: The methods that read the kinds of objects; in an attribute they would make each reader a cycle of references.
_KIND_READERS: Final[dict[str, Callable[[_SchemaReader, dict[str, Any], str, str], int]]] = {
    "record": _SchemaReader._read_record,
    "error": _SchemaReader._read_record,
    "enum": _SchemaReader._read_enum,
    "fixed": _SchemaReader._read_fixed,
    "array": _SchemaReader._read_container,
    "map": _SchemaReader._read_container,
}


def _namespace_of(name: str) -> str:
    return name.rpartition(".")[0]


def _field_aliases_are_unique(fields: dict[str, RecordField], declared: list[Any]) -> None:
    owners = {name: name for name in fields}
    for position, field in enumerate(fields.values()):
        for alias in field.aliases:
            if owners.setdefault(alias, field.name) != field.name:
                first, second = shorten_name(owners[alias]), shorten_name(field.name)
                text = f'"{shorten_name(alias)}" names two fields, "{first}" and "{second}"'
                raise invalid_document(text, f"{field.pointer}/aliases", declared[position]["aliases"])


def _parse_decimal(schema: dict[str, Any]) -> tuple[int, int] | None:
    """Precision and scale; None for another or an invalid logical type, which must be ignored."""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if schema.get("logicalType") != "decimal" or not isinstance(precision, int) or not isinstance(scale, int):
        return None
    max_precision = math.floor((8 * schema["size"] - 1) * math.log10(2)) if schema["type"] == "fixed" else precision
    if (
        isinstance(precision, bool)
        or isinstance(scale, bool)
        or not 0 <= scale <= precision <= max_precision
        or precision == 0
    ):
        return None
    return precision, scale
