"""The attributes of one level or object, compiled from their definitions so that values are checked fast.

A CompiledAttributes object is built once per model. `ifvalues` adds variants, which are built on first use and cached.
So an entity costs one pass over the names that its variant knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from annals.domain.model.spec_attributes import Definition, Definitions
from annals.domain.model.validation import values
from annals.domain.model.validation.targets import Types
from annals.domain.model.validation.value_errors import NO_VALUE, InvalidValue, MissingValues, UnknownName, ValuePath
from annals.domain.model.validation.values import ValueCheck
from annals.domain.values import xid as xids

#: Map keys, and attribute names if `namecharset` is `extended` (ENT-12).
MAP_KEY: Final = re.compile(r"[a-z0-9][a-z0-9:_.\-]{0,62}\Z")
#: The character sets that `namecharset` names.
CHARSETS: Final = {"strict": xids.NAME, "extended": MAP_KEY}

#: Drops read-only members at every depth of a value.
DropReadonly = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class AttributeRules:
    """Additional rules for the attributes of one CompiledAttributes object.

    names: character set of the names that `*` allows. trailing_names: names that are serialized after extensions.
    served_names: names that only the server sets. compared_names: read-only names that a request may state, to be
    compared. reserved_names: names that no extension may have. extra_checks: additional checks of single attributes.
    """

    types: Types
    names: re.Pattern[str] = xids.NAME
    trailing_names: tuple[str, ...] = ()
    served_names: frozenset[str] = frozenset()
    compared_names: frozenset[str] = frozenset()
    reserved_names: frozenset[str] = frozenset()
    extra_checks: Mapping[str, ValueCheck] = field(default_factory=dict)


class CompiledDefinition(NamedTuple):
    """The functions for values of one definition; `accept` is None if nothing inside is read-only."""

    check: ValueCheck
    accept: DropReadonly | None


class AttributeRow(NamedTuple):
    """One attribute in the pass over the attributes."""

    name: str
    check: ValueCheck
    default: Any
    required: bool


class CompiledAttributes:
    """See the module. Immutable, except for the cached variants for `ifvalues`."""

    def __init__(
        self, definitions: Definitions, rules: AttributeRules, pending_switches: Iterable[str] | None = None
    ) -> None:
        """pending_switches: names whose `ifvalues` are not applied yet; None: all."""
        self._definitions = definitions
        self._rules = rules
        self._variants: dict[tuple[tuple[str, Hashable], ...], CompiledAttributes] = {}
        switches = definitions if pending_switches is None else pending_switches
        self._switches = _switches(definitions, (name for name in switches if name not in rules.served_names))
        compiled_by_name = {
            name: compile_definition(name, row, rules)
            for name, row in definitions.items()
            if name not in rules.served_names
        }
        wildcard = compiled_by_name.pop("*", None)
        self._wildcard_check = wildcard.check if wildcard else None
        self._wildcard_size_check = _extension_size_check(definitions["*"]) if wildcard else None
        self._wildcard_accept = wildcard.accept if wildcard else None
        self._accept_by_name = {
            name: compiled.accept for name, compiled in compiled_by_name.items() if compiled.accept is not None
        }
        rows = [_attribute_row(name, definitions[name], compiled) for name, compiled in compiled_by_name.items()]
        self._leading_rows = [row for row in rows if row.name not in rules.trailing_names]
        self._trailing_rows = [row for row in rows if row.name in rules.trailing_names]
        self._known_names = frozenset(compiled_by_name) | rules.served_names
        self._readonly_names = frozenset(name for name, row in definitions.items() if row.get("readonly"))
        self._dropped_names = (self._readonly_names | rules.served_names) - rules.compared_names
        self._readonly_stored_names = tuple(
            name for name in definitions if name in self._readonly_names - rules.served_names
        )
        self._leading_names = [name for name in definitions if name not in rules.trailing_names and name != "*"]
        self._ordered_names = frozenset((*self._leading_names, *rules.trailing_names))

    @property
    def readonly_inside(self) -> bool:
        """Whether `accept` could ever drop anything."""
        siblings = (
            row
            for keys in self._switches.values()
            for siblings_of_value in keys.values()
            for row in siblings_of_value.values()
        )
        return bool(
            self._readonly_names
            or self._accept_by_name
            or self._wildcard_accept
            or any(_has_readonly(row) for row in siblings)
        )

    def complete(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """The attributes without nulls, with defaults, with every value checked, in serialization order.

        Raises: InvalidValue.
        """
        variant = self.active_variant(attributes)
        completed: dict[str, Any] = {}
        missing: list[ValuePath] = []
        _fill_rows(variant._leading_rows, attributes, completed, missing)
        if not variant._known_names.issuperset(attributes):
            variant._complete_extensions(attributes, completed, missing)
        _fill_rows(variant._trailing_rows, attributes, completed, missing)
        if missing:
            raise MissingValues(missing)
        return completed

    def accept(self, requested: Mapping[str, Any], stored: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The requested attributes without read-only ones. stored: decides on `ifvalues` where requested has none."""
        writable = {name: value for name, value in requested.items() if name not in self._dropped_names}
        variant = self.active_variant({**stored, **writable} if stored else writable)
        dropped_names = variant._dropped_names
        accepted = {name: value for name, value in requested.items() if name not in dropped_names}
        for name, accept in variant._accept_by_name.items():
            if name in accepted:
                accepted[name] = accept(accepted[name])
        if variant._wildcard_accept:
            accepted |= {
                name: variant._wildcard_accept(accepted[name]) for name in accepted.keys() - variant._known_names
            }
        return accepted

    def settable_values(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        """The stored values that requests or defaults can set."""
        served_names = self._rules.served_names
        return {name: value for name, value in stored.items() if name not in served_names}

    def readonly_values(self, stored: Mapping[str, Any], replacement: Mapping[str, Any]) -> dict[str, Any]:
        """The stored values that a replacement keeps: those that clients cannot write and no request results in.

        Siblings that the replacement does not enable are not among them (MOD-20). None are kept if it enables two of
        one name, which `complete` refuses.
        """
        try:
            variant = self.active_variant(stored)
        except InvalidValue:  # stored under a model that allowed it
            variant = self
        kept = {name: stored[name] for name in variant._readonly_stored_names if name in stored}
        if variant is self:
            return kept
        try:
            names = self.active_variant({**kept, **replacement})._readonly_stored_names
        except InvalidValue:
            return {}
        return {name: value for name, value in kept.items() if name in names}

    def order(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """The same members: those of the model in its order, then the others by name, then those that come last."""
        variant = self.active_variant(attributes)
        ordered = {name: attributes[name] for name in variant._leading_names if name in attributes}
        if not variant._ordered_names.issuperset(attributes):
            ordered |= {name: attributes[name] for name in sorted(attributes.keys() - variant._ordered_names)}
        return ordered | {name: attributes[name] for name in variant._rules.trailing_names if name in attributes}

    def active_variant(self, attributes: Mapping[str, Any]) -> CompiledAttributes:
        """The variant with the siblings that these values enable, and those that the siblings enable (MOD-23)."""
        variant = self
        while variant._switches:
            switch_values = variant._switch_values(attributes)
            if not switch_values:
                break
            variant = variant._variants.get(switch_values) or variant._build_variant(switch_values)
        return variant

    def _switch_values(self, attributes: Mapping[str, Any]) -> tuple[tuple[str, Hashable], ...]:
        switch_values = []
        for name, keys in self._switches.items():
            definition, value = self._definitions[name], attributes.get(name)
            key = values.switch_key(definition["type"], definition.get("default") if value is None else value)
            if key in keys:
                switch_values.append((name, key))
        return tuple(switch_values)

    def _build_variant(self, switch_values: tuple[tuple[str, Hashable], ...]) -> CompiledAttributes:
        siblings_by_name: dict[str, Definitions] = {name: self._switches[name][key] for name, key in switch_values}
        definitions: Definitions = {}
        for name, row in self._definitions.items():
            definitions[name] = row
            for sibling, definition in siblings_by_name.get(name, {}).items():
                if sibling in definitions or sibling in self._definitions:
                    raise InvalidValue("two values at this level define it in different ways", (sibling,))
                definitions[sibling] = definition
        pending_switches = [sibling for siblings in siblings_by_name.values() for sibling in siblings]
        return self._variants.setdefault(switch_values, CompiledAttributes(definitions, self._rules, pending_switches))

    def _complete_extensions(
        self, attributes: Mapping[str, Any], completed: dict[str, Any], missing: list[ValuePath]
    ) -> None:
        names = sorted(name for name in attributes.keys() - self._known_names if attributes[name] is not None)
        for name in names:
            if self._wildcard_check is None:
                raise UnknownName("it is unknown", (name,))
            if not self._rules.names.match(name):
                raise InvalidValue("it is not a valid attribute name", (name,))
            if name in self._rules.reserved_names:
                raise InvalidValue("the name is taken by the registry itself", (name,))
        if self._wildcard_check:
            _fill_rows(
                [AttributeRow(name, self._extension_check(name), None, False) for name in names],
                attributes,
                completed,
                missing,
            )

    def _extension_check(self, name: str) -> ValueCheck:
        """The check of an extension, whose size includes its name."""
        assert self._wildcard_check is not None, "asked where there may be extensions"
        return (
            values.chained_check([self._wildcard_check, self._wildcard_size_check(name)])
            if self._wildcard_size_check
            else self._wildcard_check
        )


def compile_definition(name: str, definition: Definition, rules: AttributeRules) -> CompiledDefinition:
    """The functions for values of a definition. name: of the attribute, for ENT-13."""
    type_name = definition["type"]
    if type_name == "string" and not definition.get("enum") and name not in rules.extra_checks:
        return CompiledDefinition(values.text_check(name), None)
    extra_checks = [rules.extra_checks[name]] if name in rules.extra_checks else []
    if type_name in values.SCALARS:
        return CompiledDefinition(
            values.chained_check([*_scalar_checks(definition, rules.types), values.size_check(name), *extra_checks]),
            None,
        )
    compiled = _COMPILERS[type_name](definition, rules.types)
    return CompiledDefinition(values.chained_check([compiled.check, *extra_checks]), compiled.accept)


def _scalar_checks(definition: Definition, types: Types, inherited: Definition | None = None) -> list[ValueCheck]:
    """The checks of a scalar value. inherited: the array whose `enum` applies to its items (EP-02)."""
    bounds = inherited or definition
    checks = [values.scalar_check(definition["type"], types, definition.get("target"))]
    if bounds.get("enum") and bounds.get("strict", True):
        checks.append(values.enum_check(definition["type"], bounds["enum"], ignore_case=bool(bounds.get("fold"))))
    return checks


def _compile_array(definition: Definition, types: Types) -> CompiledDefinition:
    item = definition["item"]
    compiled_item = (
        CompiledDefinition(values.chained_check(_scalar_checks(item, types, definition)), None)
        if item["type"] in values.SCALARS
        else _COMPILERS[item["type"]](item, types)
    )
    unchecked_types = frozenset[type]() if definition.get("enum") else values.PLAIN.get(item["type"], frozenset())

    def check(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise InvalidValue("it is not an array")
        # This check takes a tenth of the time, which matters while other writers wait for the write lock.
        if unchecked_types.issuperset(map(type, value)):
            return value
        items = []
        for index, element in enumerate(value):
            try:
                if element is None:
                    raise InvalidValue(NO_VALUE)
                items.append(compiled_item.check(element))
            except InvalidValue as invalid_value:
                raise invalid_value.in_container(index) from None
        return items

    accept_item = compiled_item.accept
    return CompiledDefinition(check, accept_item and (lambda value: _accept_items(accept_item, value)))


def _compile_map(definition: Definition, types: Types) -> CompiledDefinition:
    item = definition["item"]
    is_scalar = item["type"] in values.SCALARS
    compiled_item = (
        CompiledDefinition(values.chained_check(_scalar_checks(item, types)), None)
        if is_scalar
        else _COMPILERS[item["type"]](item, types)
    )

    def check(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise InvalidValue("it is not a map")
        members = {}
        for key in sorted(value):
            element = value[key]
            if element is None:
                continue
            try:
                if not MAP_KEY.match(key):
                    raise InvalidValue(
                        "it is not a valid map key: 1 to 63 of a-z 0-9 : - _ . with a letter or digit first"
                    )
                members[key] = compiled_item.check(element)
                if is_scalar:
                    values.size_check(key)(element)
            except InvalidValue as invalid_value:
                raise invalid_value.in_container(key) from None
        return members

    accept_item = compiled_item.accept
    return CompiledDefinition(check, accept_item and (lambda value: _accept_members(accept_item, value)))


def _compile_object(definition: Definition, types: Types) -> CompiledDefinition:
    names = CHARSETS[definition.get("namecharset", "strict")]
    compiled = CompiledAttributes(definition.get("attributes", {}), AttributeRules(types, names))

    def check(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise InvalidValue("it is not an object")
        return compiled.complete(value)

    def accept(value: Any) -> Any:
        return compiled.accept(value) if isinstance(value, dict) else value

    return CompiledDefinition(check, accept if compiled.readonly_inside else None)


def _compile_any(definition: Definition, types: Types) -> CompiledDefinition:
    # Below `any` a server cannot distinguish attributes from map keys, so only JSON's own rules apply there.
    return CompiledDefinition(lambda value: value, None)


def _extension_size_check(definition: Definition) -> Callable[[str], ValueCheck] | None:
    """The size check of an extension, by the type that `*` allows; objects check their own attributes."""
    if definition["type"] in values.SCALARS:
        return values.size_check
    innermost = definition
    while innermost["type"] in ("array", "map"):
        innermost = innermost["item"]
    return None if innermost["type"] == "object" else values.nested_size_check


_COMPILERS: Final[dict[str, Callable[[Definition, Types], CompiledDefinition]]] = {
    "any": _compile_any,
    "array": _compile_array,
    "map": _compile_map,
    "object": _compile_object,
}


def _fill_rows(
    rows: list[AttributeRow], attributes: Mapping[str, Any], completed: dict[str, Any], missing: list[ValuePath]
) -> None:
    for name, check, default, required in rows:
        value = attributes.get(name)
        try:
            if value is not None:
                completed[name] = check(value)
            elif default is not None:
                completed[name] = default
            elif required:
                missing.append((name,))
        except MissingValues as invalid_value:
            missing.extend((name, *path) for path in invalid_value.paths)
        except InvalidValue as invalid_value:
            raise invalid_value.in_container(name) from None


def _attribute_row(name: str, definition: Definition, compiled: CompiledDefinition) -> AttributeRow:
    default = definition.get("default")
    try:
        default_value = None if default is None else compiled.check(default)
    except InvalidValue as invalid_value:
        raise invalid_value.in_container("default").in_container(name) from None
    return AttributeRow(name, compiled.check, default_value, bool(definition.get("required")))


def _switches(definitions: Definitions, names: Iterable[str]) -> dict[str, dict[Hashable, Definitions]]:
    """Sibling definitions by attribute and `switch_key`. Of several keys with one value, which stored models may have,
    the first counts.
    """
    return {
        name: {
            values.switch_key(definitions[name]["type"], key): branch["siblingattributes"]
            for key, branch in reversed(definitions[name]["ifvalues"].items())
        }
        for name in names
        if definitions[name].get("ifvalues")
    }


def _has_readonly(definition: Definition) -> bool:
    """Whether a definition or one below it is read-only."""
    nested = [*definition.get("attributes", {}).values(), *filter(None, [definition.get("item")])]
    nested += [
        row
        for branch in definition.get("ifvalues", {}).values()
        for row in branch.get("siblingattributes", {}).values()
    ]
    return bool(definition.get("readonly")) or any(_has_readonly(inner_definition) for inner_definition in nested)


def _accept_items(accept: DropReadonly, value: Any) -> Any:
    return [accept(item) for item in value] if isinstance(value, list) else value


def _accept_members(accept: DropReadonly, value: Any) -> Any:
    return {key: accept(member) for key, member in value.items()} if isinstance(value, dict) else value
