"""Avro texts: the canonical text is that of Avro's Java library, on which Confluent's registry builds.

A reference is a named type of another text. Where it is used first, its definition is put in; the result is a document
that the registry's own format module reads, unless it names a type without a namespace within one.
Rules CSR-415, CSR-416, CSR-420, CSR-509, CSR-510.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from annals.domain.confluent.compatibility.avro import avro_differences
from annals.domain.confluent.compatibility.difference import Difference
from annals.domain.confluent.texts.avro_values import DefaultNormalizer, normal_json
from annals.domain.formats import avro
from annals.domain.formats.avro.schema import PRIMITIVE_TYPES, AvroSchema, AvroType
from annals.domain.formats.contract import InvalidDocument
from annals.domain.formats.json_document import load_json
from annals.domain.values.json_text import dumps

#: Those of Avro's Java library 1.12 for new schemas, and for stored ones, which may be older than these checks.
_NEW_RULES: Final = avro.ReaderRules(unique_aliases=False)
_STORED_RULES: Final = avro.ReaderRules(unique_aliases=False, checks_names=False, checks_defaults=False)
#: A string or a comment, also without its end: each byte is looked at once.
_STRING_OR_COMMENT: Final = re.compile(rb'"(?:[^"\\]|\\.)*"?|(/\*.*?\*/|//[^\r\n]*)|/\*.*', re.DOTALL)
#: The members that Avro reads, by the kind of the schema; all others are custom properties.
_SCHEMA_MEMBERS: Final = frozenset(
    ("type", "name", "namespace", "doc", "aliases", "fields", "items", "values", "size", "symbols")
)
_FIELD_MEMBERS: Final = frozenset(("name", "type", "doc", "default", "order", "aliases"))
_NAMED_KINDS: Final = frozenset(("record", "error", "enum", "fixed"))
#: The namespace of referenced types that have none, while the parser reads a text that uses them within one.
_STAND_IN: Final = "annals_no_namespace"


@dataclass(frozen=True, slots=True)
class AvroText:
    """A parsed text. document: as it is. resolved: with the definitions of references. schema: the resolved one.

    referenced: the full names of the types that references define. violation: why a new schema may not have this text.
    """

    document: Any
    resolved: Any
    schema: AvroSchema
    referenced: frozenset[str] = frozenset()
    violation: str | None = None


def parse(text: bytes, references: Mapping[str, bytes]) -> AvroText:
    """See `SchemaTexts`."""
    text = _without_comments(text)
    references = {name: _without_comments(referenced) for name, referenced in references.items()}
    try:
        try:
            return _parse(text, references, _NEW_RULES)
        except InvalidDocument as violation:
            return replace(_parse(text, references, _STORED_RULES), violation=str(violation))
    except RecursionError:
        raise InvalidDocument("the document is nested too deeply") from None


def _parse(text: bytes, references: Mapping[str, bytes], rules: avro.ReaderRules) -> AvroText:
    document = load_json(text)
    if not references:
        return AvroText(document, document, avro.parse_by_rules(text, rules))
    definitions = _referenced_definitions(references)
    resolved, schema = _inline_references(document, definitions, rules)
    return AvroText(document, resolved, schema, frozenset(definitions))


def _without_comments(text: bytes) -> bytes:
    if b"/*" not in text and b"//" not in text:
        return text
    return _STRING_OR_COMMENT.sub(lambda found: b" " if found[1] else found[0], text)


def violation(parsed: AvroText) -> str | None:
    return parsed.violation


def canonical_text(parsed: AvroText) -> str:
    return dumps(_AvroPrinter(parsed, is_normal=False).schema(parsed.document, "")).decode()


def normalized_text(parsed: AvroText) -> str:
    return dumps(_AvroPrinter(parsed, is_normal=True).schema(parsed.document, "")).decode()


def stored_text(parsed: AvroText, sent: str) -> str:
    return _without_comments(sent.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def resolved(parsed: AvroText) -> AvroText:
    return replace(parsed, document=parsed.resolved)


def declared_format(parsed: AvroText) -> None:
    """None: a schema does not say its release."""


def formatted_text(parsed: AvroText, format: str) -> str | None:
    return canonical_text(resolved(parsed)) if format == "resolved" else None


def differences(reader: AvroText, writer: AvroText, is_lenient: bool) -> list[Difference]:
    return avro_differences(reader.schema, writer.schema)


# --- the canonical text ----------------------------------------------------------------------------------------------


class _AvroPrinter:
    """Orders the members of schemas as Avro's Java library prints them.

    is_normal: aliases and custom properties by name, values in one form, and no empty `doc` of a named type.
    """

    def __init__(self, parsed: AvroText, is_normal: bool) -> None:
        self._is_normal = is_normal
        # Defaults that are not values of their types have no form of their types.
        self._defaults = DefaultNormalizer(parsed.schema) if is_normal and not parsed.violation else None
        self._referenced = parsed.referenced
        defined = _definitions(parsed.document, "") if parsed.referenced else ()
        self._names = {*parsed.referenced, *(full_name for full_name, _, _ in defined)}

    def schema(self, schema: Any, space: str) -> Any:
        if isinstance(schema, list):
            return [self.schema(branch, space) for branch in schema]
        if isinstance(schema, str):
            return self._name(schema, space)
        if isinstance(schema.get("type"), dict | list):
            return self.schema(schema["type"], space)
        kind = schema["type"]
        if kind in _NAMED_KINDS:
            return self._named(schema, space)
        if kind in ("array", "map"):
            member = "items" if kind == "array" else "values"
            return {"type": kind, member: self.schema(schema[member], space), **self._properties(schema)}
        properties = self._properties(schema) if kind in PRIMITIVE_TYPES else {}
        return {"type": kind, **properties} if properties else self._name(kind, space)

    def _named(self, schema: dict[str, Any], space: str) -> dict[str, Any]:
        kind, (name, own_space) = schema["type"], _split_name(schema, space)
        printed = {"type": kind, "name": name, **({"namespace": own_space} if own_space != space else {})}
        doc = schema.get("doc")
        printed |= {"doc": doc} if isinstance(doc, str) and (doc or not self._is_normal) else {}
        if kind in ("record", "error"):
            printed["fields"] = [self._field(field, _qualify(name, own_space)) for field in schema["fields"]]
        elif kind == "enum":
            printed["symbols"] = schema["symbols"]
            printed |= {"default": schema["default"]} if "default" in schema else {}
        else:
            printed["size"] = schema["size"]
        printed |= self._properties(schema, {"default"} if kind == "enum" else set())
        if schema.get("aliases"):
            aliases = self._aliases(_qualify(alias, own_space) for alias in schema["aliases"])
            printed["aliases"] = [_relative(alias, own_space) for alias in aliases]
        return printed

    def _field(self, field: dict[str, Any], record: str) -> dict[str, Any]:
        printed = {"name": field["name"], "type": self.schema(field["type"], record.rpartition(".")[0])}
        has_doc = isinstance(field.get("doc"), str) if self._is_normal else "doc" in field
        printed |= {"doc": field["doc"]} if has_doc else {}
        printed |= {"default": self._default(record, field)} if "default" in field else {}
        if field.get("order", "ascending") != "ascending":
            printed["order"] = field["order"]
        printed |= {"aliases": self._aliases(field["aliases"])} if field.get("aliases") else {}
        return printed | self._ordered({name: value for name, value in field.items() if name not in _FIELD_MEMBERS})

    def _name(self, name: str, space: str) -> str:
        if name in PRIMITIVE_TYPES:
            return name
        full_name = _qualify(name, space)
        if name in self._referenced and full_name not in self._names:
            return name  # a type without a namespace, used within one
        return _relative(full_name, space)

    def _properties(self, schema: dict[str, Any], others: set[str] | frozenset[str] = frozenset()) -> dict[str, Any]:
        known = _SCHEMA_MEMBERS | others
        return self._ordered({name: value for name, value in schema.items() if name not in known})

    def _ordered(self, properties: dict[str, Any]) -> dict[str, Any]:
        if not self._is_normal:
            return properties
        return {name: normal_json(properties[name]) for name in sorted(properties)}

    def _aliases(self, aliases: Iterable[str]) -> list[str]:
        return sorted(set(aliases)) if self._is_normal else list(aliases)

    def _default(self, record: str, field: dict[str, Any]) -> Any:
        if self._defaults:
            return self._defaults.normal_default(record, field["name"], field["default"])
        return normal_json(field["default"]) if self._is_normal else field["default"]


def _split_name(schema: dict[str, Any], space: str) -> tuple[str, str]:
    """The simple name and the namespace of a definition."""
    own_space, _, name = str(schema["name"]).rpartition(".")
    if own_space:
        return name, own_space
    declared = schema.get("namespace")
    return name, declared if isinstance(declared, str) else space


def _qualify(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _relative(full_name: str, space: str) -> str:
    own_space, _, name = full_name.rpartition(".")
    return name if own_space == space else full_name


# --- references ------------------------------------------------------------------------------------------------------


_Definitions = Mapping[str, tuple[dict[str, Any], str]]


def _referenced_definitions(references: Mapping[str, bytes]) -> _Definitions:
    """The types that references define by full name, each with the namespace around it."""
    definitions: dict[str, tuple[dict[str, Any], str]] = {}
    for text in references.values():
        for full_name, definition, space in _definitions(load_json(text), ""):
            definitions.setdefault(full_name, (definition, space))
    return definitions


def _inline_references(document: Any, definitions: _Definitions, rules: avro.ReaderRules) -> tuple[Any, AvroSchema]:
    """The document with the definitions in it, and what it declares."""
    inliner = _Inliner(definitions)
    resolved = inliner.schema(document, "", is_reference=False)
    source = dumps(resolved)
    if not inliner.needs_stand_in:
        return resolved, avro.parse_by_rules(source, rules)
    renamed = _Inliner(definitions, _STAND_IN).schema(document, "", is_reference=False)
    schema = avro.parse_by_rules(dumps(renamed), rules)
    return resolved, AvroSchema(tuple(map(_without_stand_in, schema.types)), schema.root, source)


def _without_stand_in(type: AvroType) -> AvroType:
    name, *aliases = (one.removeprefix(f"{_STAND_IN}.") for one in (type.name, *type.aliases))
    return replace(type, name=name, aliases=tuple(aliases))


def _definitions(schema: Any, space: str) -> Iterator[tuple[str, dict[str, Any], str]]:
    """The named types that a schema defines, with the namespace around each."""
    if isinstance(schema, list):
        for branch in schema:
            yield from _definitions(branch, space)
    if not isinstance(schema, dict):
        return
    kind, inner_space = schema.get("type"), space
    if isinstance(kind, str) and kind in _NAMED_KINDS and isinstance(schema.get("name"), str):
        name, inner_space = _split_name(schema, space)
        yield _qualify(name, inner_space), schema, space
    for part in _parts(schema):
        yield from _definitions(part, inner_space)


def _parts(schema: dict[str, Any]) -> Iterator[Any]:
    fields = schema.get("fields")
    yield from (field.get("type") for field in fields if isinstance(field, dict)) if isinstance(fields, list) else ()
    yield from (schema[member] for member in ("items", "values") if member in schema)
    if isinstance(schema.get("type"), dict | list):
        yield schema["type"]


class _Inliner:
    """Puts the definition of each referenced type where it is used first.

    stand_in: the namespace for referenced types that have none. needs_stand_in: such a type is used again within a
    namespace. Avro's Java library finds it there by its name, which by Avro's specification names no type.
    """

    def __init__(self, definitions: _Definitions, stand_in: str = "") -> None:
        self._definitions = definitions
        self._defined: set[str] = set()
        self._stand_in = stand_in
        self.needs_stand_in = False

    def schema(self, schema: Any, space: str, is_reference: bool) -> Any:
        """The schema with definitions. is_reference: it is part of a referenced text."""
        if isinstance(schema, list):
            return [self.schema(branch, space, is_reference) for branch in schema]
        if isinstance(schema, str):
            return self._use(schema, space, is_reference)
        if not isinstance(schema, dict):
            return schema
        kind = schema.get("type")
        if isinstance(kind, str) and kind in _NAMED_KINDS and isinstance(schema.get("name"), str):
            return self._define(schema, space, is_reference)
        if isinstance(kind, str) and kind not in PRIMITIVE_TYPES and kind not in ("array", "map"):
            return self._use(kind, space, is_reference)
        return self._with_parts(schema, lambda part: self.schema(part, space, is_reference))

    def _use(self, name: str, space: str, is_reference: bool) -> Any:
        if name in PRIMITIVE_TYPES:
            return name
        full_name = _qualify(name, space)
        is_known = full_name in self._defined or full_name in self._definitions
        if not is_known and name in self._definitions:
            full_name = name  # a type without a namespace, used within one
            self.needs_stand_in |= name in self._defined
        if full_name in self._defined:
            return self._name(full_name) if is_reference or full_name in self._definitions else name
        if full_name not in self._definitions:
            return name
        definition, own_space = self._definitions[full_name]
        return self._define(definition, own_space, is_reference=True)

    def _name(self, full_name: str) -> str:
        is_bare = "." not in full_name and full_name in self._definitions
        return f"{self._stand_in}.{full_name}" if is_bare and self._stand_in else full_name

    def _define(self, schema: dict[str, Any], space: str, is_reference: bool) -> Any:
        name, own_space = _split_name(schema, space)
        full_name = _qualify(name, own_space)
        if is_reference and full_name in self._defined:
            return self._name(full_name)
        if not is_reference and full_name in self._definitions:
            raise InvalidDocument(f"{full_name} is defined both here and in a reference")
        self._defined.add(full_name)
        named = {**schema, "name": name, "namespace": own_space or self._stand_in} if is_reference else schema
        return self._with_parts(named, lambda part: self.schema(part, own_space, is_reference))

    def _with_parts(self, schema: dict[str, Any], convert: Callable[[Any], Any]) -> dict[str, Any]:
        changed: dict[str, Any] = {
            member: convert(schema[member]) for member in ("items", "values") if member in schema
        }
        if isinstance(schema.get("type"), dict | list):
            changed["type"] = convert(schema["type"])
        fields = schema.get("fields")
        if isinstance(fields, list):
            changed["fields"] = [
                {**field, "type": convert(field["type"])} if isinstance(field, dict) and "type" in field else field
                for field in fields
            ]
        return {**schema, **changed}
