"""The attributes of one level or object, compiled from their definitions so that values are checked fast.

A CompiledAttributes object is built once per model. `ifvalues` adds variants, which are built on first use and cached.
So an entity costs one pass over the names that its variant knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, NamedTuple

from domain.model import values
from domain.model.spec_attributes import Definition, Definitions
from domain.model.targets import Types
from domain.model.value_errors import NO_VALUE, InvalidValue, MissingValues, UnknownName, ValuePath
from domain.model.values import ValueCheck
from domain.values import xid as xids

#: Map keys, and attribute names if `namecharset` is `extended` (ENT-12).
MAP_KEY: Final = re.compile(r"[a-z0-9][a-z0-9:_.\-]{0,62}\Z")
#: The character sets that `namecharset` names.
CHARSETS: Final = {"strict": xids.NAME, "extended": MAP_KEY}

#: Drops read-only members at every depth of a value.
DropReadonly = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class AttributeRules:
    """Additional rules for the attributes of one CompiledAttributes object.

    names: character set of the names that `*` allows. last: names that are serialized after extensions.
    served: names that only the server sets. compared: read-only names that a request may state, to be compared.
    reserved: names that no extension may have. extra: additional checks of single attributes.
    """

    types: Types
    names: re.Pattern[str] = xids.NAME
    last: tuple[str, ...] = ()
    served: frozenset[str] = frozenset()
    compared: frozenset[str] = frozenset()
    reserved: frozenset[str] = frozenset()
    extra: Mapping[str, ValueCheck] = field(default_factory=dict)


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

    def __init__(self, definitions: Definitions, rules: AttributeRules, switching: Iterable[str] | None = None) -> None:
        """switching: names whose `ifvalues` are not applied yet; None: all."""
        self._definitions = definitions
        self._rules = rules
        self._variants: dict[tuple[tuple[str, str], ...], CompiledAttributes] = {}
        self._switches = _switches(definitions, definitions if switching is None else switching)
        codecs = {
            name: compile_definition(name, row, rules) for name, row in definitions.items() if name not in rules.served
        }
        star = codecs.pop("*", None)
        self._star = star.check if star else None
        self._sized = _sized(definitions["*"]) if star else None
        self._star_accept = star.accept if star else None
        self._deep = {name: each.accept for name, each in codecs.items() if each.accept is not None}
        rows = [_row(name, definitions[name], each) for name, each in codecs.items()]
        self._head = [row for row in rows if row.name not in rules.last]
        self._tail = [row for row in rows if row.name in rules.last]
        self._names = frozenset(codecs) | rules.served
        self._readonly = frozenset(name for name, row in definitions.items() if row.get("readonly"))
        self._dropped = (self._readonly | rules.served) - rules.compared
        self._keepable = tuple(name for name in definitions if name in self._readonly - rules.served)
        self._before = [name for name in definitions if name not in rules.last and name != "*"]
        self._placed = frozenset((*self._before, *rules.last))

    @property
    def readonly_inside(self) -> bool:
        """Whether `accept` could ever drop anything."""
        siblings = (row for keys in self._switches.values() for added in keys.values() for row in added.values())
        return bool(self._readonly or self._deep or self._star_accept or any(_says_readonly(row) for row in siblings))

    def complete(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """The attributes without nulls, with defaults, with every value checked, in serialization order.

        Raises: InvalidValue.
        """
        shape = self.active(attributes)
        done: dict[str, Any] = {}
        missing: list[ValuePath] = []
        _fill(shape._head, attributes, done, missing)
        if not shape._names.issuperset(attributes):
            shape._extensions(attributes, done, missing)
        _fill(shape._tail, attributes, done, missing)
        if missing:
            raise MissingValues(missing)
        return done

    def accept(self, given: Mapping[str, Any], stored: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The given attributes without read-only ones. stored: decides on `ifvalues` where nothing is given."""
        shape = self.active({**stored, **given} if stored else given)
        drop = shape._dropped
        kept = {name: value for name, value in given.items() if name not in drop}
        for name, accept in shape._deep.items():
            if name in kept:
                kept[name] = accept(kept[name])
        if shape._star_accept:
            kept |= {name: shape._star_accept(kept[name]) for name in kept.keys() - shape._names}
        return kept

    def settable(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        """The stored values that requests or defaults can set."""
        served = self._rules.served
        return {name: value for name, value in stored.items() if name not in served}

    def readonly(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        """The stored values that clients cannot write and that do not result from requests."""
        shape = self.active(stored)
        return {name: stored[name] for name in shape._keepable if name in stored}

    def order(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """The same members: those of the model in its order, then the others by name, then those that come last."""
        shape = self.active(attributes)
        done = {name: attributes[name] for name in shape._before if name in attributes}
        if not shape._placed.issuperset(attributes):
            done |= {name: attributes[name] for name in sorted(attributes.keys() - shape._placed)}
        return done | {name: attributes[name] for name in shape._rules.last if name in attributes}

    def active(self, attributes: Mapping[str, Any]) -> CompiledAttributes:
        """The variant with the siblings that these values enable, and those that the siblings enable (MOD-23)."""
        shape = self
        while shape._switches:
            chosen = shape._chosen(attributes)
            if not chosen:
                break
            shape = shape._variants.get(chosen) or shape._vary(chosen)
        return shape

    def _chosen(self, attributes: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
        chosen = []
        for name, keys in self._switches.items():
            value = attributes.get(name)
            key = _key(self._definitions[name].get("default") if value is None else value)
            if key in keys:
                chosen.append((name, key))
        return tuple(chosen)

    def _vary(self, chosen: tuple[tuple[str, str], ...]) -> CompiledAttributes:
        added: dict[str, Definitions] = {name: self._switches[name][key] for name, key in chosen}
        joined: Definitions = {}
        for name, row in self._definitions.items():
            joined[name] = row
            for sibling, definition in added.get(name, {}).items():
                if sibling in joined or sibling in self._definitions:
                    raise InvalidValue("two values at this level define it in different ways", (sibling,))
                joined[sibling] = definition
        switching = [sibling for siblings in added.values() for sibling in siblings]
        return self._variants.setdefault(chosen, CompiledAttributes(joined, self._rules, switching))

    def _extensions(self, attributes: Mapping[str, Any], done: dict[str, Any], missing: list[ValuePath]) -> None:
        names = sorted(name for name in attributes.keys() - self._names if attributes[name] is not None)
        for name in names:
            if self._star is None:
                raise UnknownName("it is unknown", (name,))
            if not self._rules.names.match(name):
                raise InvalidValue("it is not a valid attribute name", (name,))
            if name in self._rules.reserved:
                raise InvalidValue("the name is taken by the registry itself", (name,))
        if self._star:
            _fill([AttributeRow(name, self._extension(name), None, False) for name in names], attributes, done, missing)

    def _extension(self, name: str) -> ValueCheck:
        """The check of an extension, whose size includes its name."""
        assert self._star is not None, "asked where there may be extensions"
        return values.chained_check([self._star, self._sized(name)]) if self._sized else self._star


def compile_definition(name: str, definition: Definition, rules: AttributeRules) -> CompiledDefinition:
    """The functions for values of a definition. name: of the attribute, for ENT-13."""
    kind = definition["type"]
    if kind == "string" and not definition.get("enum") and name not in rules.extra:
        return CompiledDefinition(values.text_check(name), None)
    extra = [rules.extra[name]] if name in rules.extra else []
    if kind in values.SCALARS:
        return CompiledDefinition(
            values.chained_check([*_scalar(definition, rules.types), values.size_check(name), *extra]), None
        )
    made = _COMPLEX[kind](definition, rules.types)
    return CompiledDefinition(values.chained_check([made.check, *extra]), made.accept)


def _scalar(definition: Definition, types: Types, inherited: Definition | None = None) -> list[ValueCheck]:
    """The checks of a scalar value. inherited: the array whose `enum` applies to its items (EP-02)."""
    bounds = inherited or definition
    checks = [values.scalar_check(definition["type"], types, definition.get("target"))]
    if bounds.get("enum") and bounds.get("strict", True):
        checks.append(values.enum_check(bounds["enum"], fold=bool(bounds.get("fold"))))
    return checks


def _array(definition: Definition, types: Types) -> CompiledDefinition:
    item = definition["item"]
    inner = (
        CompiledDefinition(values.chained_check(_scalar(item, types, definition)), None)
        if item["type"] in values.SCALARS
        else _COMPLEX[item["type"]](item, types)
    )
    plain = frozenset[type]() if definition.get("enum") else values.PLAIN.get(item["type"], frozenset())

    def check(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise InvalidValue("it is not an array")
        # It takes a tenth of the time, which matters while other writers wait for the write lock.
        if plain.issuperset(map(type, value)):
            return value
        done = []
        for index, each in enumerate(value):
            try:
                if each is None:
                    raise InvalidValue(NO_VALUE)
                done.append(inner.check(each))
            except InvalidValue as flaw:
                raise flaw.under(index) from None
        return done

    each_accept = inner.accept
    return CompiledDefinition(check, each_accept and (lambda value: _items(each_accept, value)))


def _map(definition: Definition, types: Types) -> CompiledDefinition:
    item = definition["item"]
    sized = item["type"] in values.SCALARS
    inner = (
        CompiledDefinition(values.chained_check(_scalar(item, types)), None)
        if sized
        else _COMPLEX[item["type"]](item, types)
    )

    def check(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise InvalidValue("it is not a map")
        done = {}
        for key in sorted(value):
            each = value[key]
            if each is None:
                continue
            try:
                if not MAP_KEY.match(key):
                    raise InvalidValue(
                        "it is not a valid map key: 1 to 63 of a-z 0-9 : - _ . with a letter or digit first"
                    )
                done[key] = inner.check(each)
                if sized:
                    values.size_check(key)(each)
            except InvalidValue as flaw:
                raise flaw.under(key) from None
        return done

    each_accept = inner.accept
    return CompiledDefinition(check, each_accept and (lambda value: _members(each_accept, value)))


def _object(definition: Definition, types: Types) -> CompiledDefinition:
    names = CHARSETS[definition.get("namecharset", "strict")]
    shape = CompiledAttributes(definition.get("attributes", {}), AttributeRules(types, names))

    def check(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise InvalidValue("it is not an object")
        return shape.complete(value)

    def accept(value: Any) -> Any:
        return shape.accept(value) if isinstance(value, dict) else value

    return CompiledDefinition(check, accept if shape.readonly_inside else None)


def _any(definition: Definition, types: Types) -> CompiledDefinition:
    # Below `any` a server cannot distinguish attributes from map keys, so only JSON's own rules apply there.
    return CompiledDefinition(lambda value: value, None)


def _sized(definition: Definition) -> Callable[[str], ValueCheck] | None:
    """The size check of an extension, by the type that `*` allows; objects check their own attributes."""
    if definition["type"] in values.SCALARS:
        return values.size_check
    inner = definition
    while inner["type"] in ("array", "map"):
        inner = inner["item"]
    return None if inner["type"] == "object" else values.nested_size_check


_COMPLEX: Final[dict[str, Callable[[Definition, Types], CompiledDefinition]]] = {
    "any": _any,
    "array": _array,
    "map": _map,
    "object": _object,
}


def _fill(
    rows: list[AttributeRow], attributes: Mapping[str, Any], done: dict[str, Any], missing: list[ValuePath]
) -> None:
    for name, check, default, required in rows:
        value = attributes.get(name)
        try:
            if value is not None:
                done[name] = check(value)
            elif default is not None:
                done[name] = default
            elif required:
                missing.append((name,))
        except MissingValues as flaw:
            missing.extend((name, *path) for path in flaw.paths)
        except InvalidValue as flaw:
            raise flaw.under(name) from None


def _row(name: str, definition: Definition, made: CompiledDefinition) -> AttributeRow:
    default = definition.get("default")
    checked = None if default is None else made.check(default)
    return AttributeRow(name, made.check, checked, bool(definition.get("required")))


def _switches(definitions: Definitions, names: Iterable[str]) -> dict[str, dict[str, Definitions]]:
    """Sibling definitions by attribute and folded key."""
    return {
        name: {key.casefold(): branch["siblingattributes"] for key, branch in definitions[name]["ifvalues"].items()}
        for name in names
        if definitions[name].get("ifvalues")
    }


def _key(value: Any) -> str:
    """The text that `ifvalues` compares; for a value that is not a scalar it is empty, which no key is."""
    return values.fold_value(value) if isinstance(value, (str, bool, int, float, Decimal)) else ""


def _says_readonly(definition: Definition) -> bool:
    """Whether a definition or one below it is read-only."""
    below = [*definition.get("attributes", {}).values(), *filter(None, [definition.get("item")])]
    below += [
        row
        for branch in definition.get("ifvalues", {}).values()
        for row in branch.get("siblingattributes", {}).values()
    ]
    return bool(definition.get("readonly")) or any(_says_readonly(each) for each in below)


def _items(accept: DropReadonly, value: Any) -> Any:
    return [accept(each) for each in value] if isinstance(value, list) else value


def _members(accept: DropReadonly, value: Any) -> Any:
    return {key: accept(each) for key, each in value.items()} if isinstance(value, dict) else value
