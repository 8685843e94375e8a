"""Parses filter and sort expressions, and resolves their paths in a model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from annals.domain.errors import problems
from annals.domain.filters.comparison import fold_text, text_sort_key
from annals.domain.filters.syntax import (
    Conjunction,
    DerivedAttribute,
    EntityFilter,
    FilterExpression,
    FilterValue,
    Operator,
    PathScope,
    Sort,
    depth,
    is_above,
)
from annals.domain.model import Model
from annals.domain.model.level import Level
from annals.domain.model.validation.rfc3339 import to_utc
from annals.domain.model.validation.values import SCALARS
from annals.domain.values import dot_path
from annals.domain.values import xid as xids
from annals.domain.values.dot_path import PathWildcard, Step

EXCLUDE_ALL: Final = "excludeall"
#: Maximum expressions of one request, because databases limit the size of a query.
MAX_EXPRESSIONS: Final = 200
#: Maximum expressions that one parameter joins; from two dozen on, PostgreSQL needs seconds to plan them together.
MAX_JOINED: Final = 16

_OPERATORS: Final = {
    "=": Operator.EQUAL,
    "!=": Operator.DIFFERENT,
    "<>": Operator.DIFFERENT,
    "<": Operator.LESS,
    "<=": Operator.AT_MOST,
    ">": Operator.MORE,
    ">=": Operator.AT_LEAST,
}
_NUMERIC: Final = frozenset(("decimal", "integer", "uinteger"))
_NUMBER: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,18})?\Z")
_STAR: Final = re.compile(r"(\\\*)|(\*)")
_NAME: Final = re.compile(r"(?:\*|[\w:.\-]+)\Z")
#: A path up to the leftmost operator outside of brackets; inside brackets, quotes are respected.
_EXPRESSION: Final = re.compile(
    r"""(?P<path>(?:[^\[=!<>]|!(?!=)|\[(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^'"\]]*)\])*)"""
    r"(?:(?P<operator>!=|<>|<=|>=|=|<|>)(?P<value>.*))?\Z",
    re.DOTALL,
)


def parse_filter(alternatives: Sequence[Sequence[str]], scope: PathScope, model: Model) -> EntityFilter:
    """The filter for lists of expressions: AND within a list, OR between lists.

    Raises: BadFilter.
    """
    all_texts = [text for texts in alternatives for text in texts]
    if len(all_texts) > MAX_EXPRESSIONS:
        raise problems.BadFilter(
            value=f"{all_texts[0]},...", error_detail=f"it has more than {MAX_EXPRESSIONS} expressions"
        )
    if any(len(texts) > MAX_JOINED for texts in alternatives):
        raise problems.BadFilter(value=f"{all_texts[0]},...", error_detail=f"it joins more than {MAX_JOINED} by commas")
    if EXCLUDE_ALL in all_texts:
        if len(all_texts) > 1:
            raise problems.BadFilter(
                value=",".join(all_texts), error_detail=f"{EXCLUDE_ALL} cannot be combined with anything else"
            )
        return ()
    conjunctions = (
        Conjunction(tuple(_parse_expression(text, scope, model) for text in texts)) for texts in alternatives if texts
    )
    return tuple(dict.fromkeys(conjunction for conjunction in conjunctions if _on_one_branch(conjunction)))


def parse_sort(text: str, scope: PathScope, model: Model) -> Sort:
    """The order that a `sort` parameter requests. Raises: BadSort."""
    key, separator, direction = text.partition("=")
    if separator and direction not in ("asc", "desc"):
        raise _bad_sort(text, "the order is either asc or desc")
    try:
        path = dot_path.parse(key)
    except ValueError as error:
        raise _bad_sort(text, str(error)) from None
    if invalid_name := _invalid_name(path):
        raise _bad_sort(text, f"no attribute can have the name {invalid_name!r}")
    if path[0] in _collection_names(scope.type, model):
        raise _bad_sort(text, f'"{path[0]}" is a nested collection')
    if _is_id_order(path, scope.type, model):
        return Sort((), direction == "desc")
    definition = _definition_at(path, scope.type, model)
    if definition is _NO_DEFINITION and len(path) == 1:
        raise _bad_sort(text, f'there is no attribute "{path[0]}"')
    if definition and definition["type"] not in SCALARS | {"any"}:
        raise _bad_sort(text, "the attribute is not a scalar")
    return Sort(tuple(step for step in path if not isinstance(step, PathWildcard)), direction == "desc")


def _on_one_branch(conjunction: Conjunction) -> bool:
    return all(is_above(expression.type, conjunction.type) for expression in conjunction.expressions)


def _parse_expression(text: str, scope: PathScope, model: Model) -> FilterExpression:
    match = _EXPRESSION.match(text)
    if match is None:
        raise _bad_filter(text, "a bracket is not closed")
    try:
        path = dot_path.parse(match["path"], wildcards=True)
    except ValueError as error:
        raise _bad_filter(text, str(error)) from None
    if invalid_name := _invalid_name(path):
        raise _bad_filter(text, f"no attribute can have the name {invalid_name!r}")
    type, attribute_path = _split_type(path, scope, model, text)
    definition = _definition_at(attribute_path, type, model)
    attribute_type = definition["type"] if definition else None
    operator, filter_value = _operator_and_value(match["operator"], match["value"], attribute_type, text)
    source = f"{dot_path.text(attribute_path)}{match['operator'] or ''}{match['value'] or ''}"
    attribute_path = _stored_path(attribute_path, type, operator, text)
    return FilterExpression(
        type,
        attribute_path,
        operator,
        filter_value,
        attribute_type in SCALARS,
        source,
        _derived_attribute(type, attribute_path, model),
    )


def _stored_path(path: tuple[Step, ...], type: str, operator: Operator, text: str) -> tuple[Step, ...]:
    """The path to look at: of another attribute for URLs that an entity has if, and only if, it has that one.

    Raises: BadFilter for URLs that are neither stored nor made of an xid alone.
    """
    is_resource = depth(type) == depth("groups.resources")
    if path == ("shortself",) or (is_resource and path == ("meta", "shortself")):
        raise _bad_filter(text, "the attribute shortself is not stored; filter by xid")
    if not is_resource:
        return path
    is_presence = operator.positive is Operator.PRESENT
    if path == ("meta", "defaultversionurl"):
        if not is_presence:
            raise _bad_filter(text, "the attribute is not stored; compare meta.defaultversionid")
        return ("meta", "defaultversionid")
    return ("versionscount",) if is_presence and path == ("versionsurl",) else path


def _invalid_name(path: Sequence[Step]) -> str | None:
    """The first step that cannot be a name; None where all can."""
    return next((step for step in path if isinstance(step, str) and not _NAME.match(step)), None)


def _split_type(path: tuple[Step, ...], scope: PathScope, model: Model, text: str) -> tuple[str, tuple[Step, ...]]:
    """The entity type that a path leads to, and the rest of the path."""
    if scope.is_meta:
        return scope.type, ("meta", *path)
    type, remaining = scope.type, path
    while remaining[0] in _collection_names(type, model):
        type = str(remaining[0]) if type == xids.REGISTRY else f"{type}.{remaining[0]}"
        remaining = remaining[1:]
        if not remaining:
            raise _bad_filter(text, f'"{path[-1]}" is a collection, not an attribute')
    return type, remaining


def _derived_attribute(type: str, path: Sequence[Step], model: Model) -> DerivedAttribute | None:
    slash = "" if type == xids.REGISTRY else "/"  # with which the xid of the registry ends
    names = {
        **_SHARED_ATTRIBUTES,
        **{f"{plural}url": DerivedAttribute(True, slash + plural) for plural in _collection_names(type, model)},
    }
    if depth(type) < depth("groups.resources"):
        return names.get(str(path[0])) if len(path) == 1 else None
    group, resource = type.split(".")[:2]
    details = "$details" if model.groups[group].resources[resource].hasdocument else ""
    names["self"] = DerivedAttribute(True, details)
    if depth(type) == depth("groups.resources"):
        names["metaurl"] = DerivedAttribute(True, "/meta")
        names["meta.self"], names["meta.xid"] = DerivedAttribute(True, "/meta"), DerivedAttribute(False, "/meta")
    return names.get(".".join(map(str, path)))


_SHARED_ATTRIBUTES: Final = {"self": DerivedAttribute(True), "xid": DerivedAttribute(False)}


def _is_id_order(path: Sequence[Step], type: str, model: Model) -> bool:
    """Whether sorting a collection by this attribute equals sorting it by id."""
    match type.split("."):
        case [group]:
            name = f"{model.groups[group].singular}id"
        case [group, resource]:
            name = f"{model.groups[group].resources[resource].singular}id"
        case _:
            name = "versionid"
    return path == (name,) or _derived_attribute(type, path, model) is not None


def _collection_names(type: str, model: Model) -> Sequence[str]:
    match type.split("."):
        case [xids.REGISTRY]:
            return tuple(model.groups)
        case [group]:
            return tuple(model.groups[group].resources)
        case [_, _]:
            return ("versions",)
    return ()


def _operator_and_value(
    operator: str | None, value: str | None, attribute_type: str | None, text: str
) -> tuple[Operator, FilterValue]:
    if operator is None or value is None:
        return Operator.PRESENT, FilterValue()
    requested = _OPERATORS[operator]
    is_equality = requested in (Operator.EQUAL, Operator.DIFFERENT)
    presence_operator, absence_operator = (
        (Operator.PRESENT, Operator.ABSENT) if requested is Operator.EQUAL else (Operator.ABSENT, Operator.PRESENT)
    )
    if not is_equality and (value == "null" or _has_star(value)):
        raise _bad_filter(text, f"{operator} takes neither null nor wildcards")
    if value == "null":
        return absence_operator, FilterValue()
    if is_equality and value and not value.strip("*"):
        return presence_operator, FilterValue()
    if attribute_type is not None and attribute_type not in SCALARS | {"any"}:
        raise _bad_filter(text, "the attribute is not a scalar, so it has no value to compare")
    return requested, _filter_value(value, attribute_type)


def _filter_value(value: str, attribute_type: str | None) -> FilterValue:
    parts = _split_wildcards(value)
    if len(parts) > 1:
        return FilterValue(pieces=tuple(map(fold_text, parts)))
    text = parts[0]
    scalar_type = attribute_type if attribute_type in SCALARS else None
    return FilterValue(
        pieces=(fold_text(text),),
        text=_comparable_text(text, scalar_type)
        if scalar_type is None or scalar_type not in _NUMERIC | {"boolean"}
        else None,
        number=_parse_number(text) if scalar_type is None or scalar_type in _NUMERIC else None,
        boolean={"true": True, "false": False}.get(text) if scalar_type in (None, "boolean") else None,
    )


def _split_wildcards(value: str) -> tuple[str, ...]:
    """The texts between the wildcards, without escapes."""
    parts = [""]
    index = 0
    for star in _STAR.finditer(value):
        parts[-1] += value[index : star.start()] + ("*" if star[1] else "")
        if star[2]:
            parts.append("")
        index = star.end()
    parts[-1] += value[index:]
    return tuple(parts)


def _has_star(value: str) -> bool:
    return any(star[2] for star in _STAR.finditer(value))


def _comparable_text(value: str, attribute_type: str | None) -> str:
    if attribute_type == "timestamp":
        try:
            return text_sort_key(to_utc(value.replace(" ", "+")))
        except (ValueError, OverflowError):
            pass
    return text_sort_key(value)


def _parse_number(value: str) -> Decimal | None:
    if not _NUMBER.match(value):
        return None
    try:
        return Decimal(value)
    except InvalidOperation:
        return None


#: The definition of an attribute that the model does not define.
_NO_DEFINITION: Final[dict[str, Any]] = {}


def _definition_at(path: Sequence[Step], type: str, model: Model) -> dict[str, Any]:
    """The model's definition of an attribute; empty where it has none."""
    definitions, steps = _definitions_at(path, type, model)
    definition = {"type": "object", "attributes": definitions}
    for step in steps:
        definition = _nested_definition(definition, step)
    return definition


def _definitions_at(path: Sequence[Step], type: str, model: Model) -> tuple[dict[str, Any], Sequence[Step]]:
    """The attribute definitions at the start of a path, and the path within them."""
    match type.split("."):
        case [xids.REGISTRY]:
            return _definitions_of_level(model.registry), path
        case [group]:
            return _definitions_of_level(model.groups[group].level), path
        case [group, resource] if path[0] == "meta":
            meta_definitions = _definitions_of_level(model.groups[group].resources[resource].meta)
            return {"meta": {"type": "object", "attributes": meta_definitions}}, path
        case [group, resource]:
            return _definitions_of_level(model.groups[group].resources[resource].version) | _RESOURCE_DEFINITIONS, path
        case [group, resource, _]:
            return _definitions_of_level(model.groups[group].resources[resource].version), path
    return {}, path


_RESOURCE_DEFINITIONS: Final = {
    "metaurl": {"type": "url"},
    "versionsurl": {"type": "url"},
    "versionscount": {"type": "uinteger"},
}


def _definitions_of_level(level: Level) -> dict[str, Any]:
    return dict(level.definitions)


def _nested_definition(definition: dict[str, Any], step: Step) -> dict[str, Any]:
    match definition.get("type"), step:
        case "object", str():
            attributes: dict[str, Any] = definition.get("attributes", {})
            return attributes.get(step) or _sibling_definition(attributes, step) or attributes.get("*", _NO_DEFINITION)
        case ("map", str() | PathWildcard.MEMBER) | ("array", int() | PathWildcard.ITEM):
            item: dict[str, Any] = definition["item"]
            return item
        case "any", _:
            return definition
    return _NO_DEFINITION


def _sibling_definition(attributes: dict[str, Any], name: str) -> dict[str, Any]:
    """The definition of an attribute that only some value of another attribute adds; its type is `any`."""
    for row in attributes.values():
        for block in row.get("ifvalues", {}).values():
            siblings = block.get("siblingattributes", {})
            if name in siblings or "*" in siblings or _sibling_definition(siblings, name):
                return {"type": "any"}
    return _NO_DEFINITION


def _bad_filter(text: str, detail: str) -> problems.Problem:
    return problems.BadFilter(value=text, error_detail=detail)


def _bad_sort(text: str, detail: str) -> problems.Problem:
    return problems.BadSort(value=text, error_detail=detail)
