"""Maps values of documents to message attributes, most of which are property objects.

Attributes can hold templates of level 1 only, because the registry's rules know no other level (CM-12). The text of an
attribute must fit in an HTTP header (ENT-13). Rules MS-34, § 12.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from annals.domain.compat.catalog.metaschema import Sections, has_braces, is_integer
from annals.domain.messaging import templates
from annals.domain.messaging.findings.unchecked_values import as_mapping, parse_media_type
from annals.domain.model.validation import rfc3339, uris
from annals.domain.model.validation.values import fits_in_header
from annals.domain.values.json_text import InvalidJson, Json, loads, number_text


class PropertyTypes(NamedTuple):
    """The type of a property with a constant value, and with a template; template: None where templates do not fit."""

    constant: str
    template: str | None = None


STRING: Final = PropertyTypes("string", "uritemplate")

#: Parsers that accept the constants of a type; other types accept any text. The model wants templates for URIs.
_PARSERS: Final[Mapping[str, Callable[[str], str]]] = {
    "timestamp": rfc3339.to_utc,
    "uri": lambda value: uris.template(uris.reference(value)),
}
#: From here on, floats do not represent every integer, and some JSON readers lose digits.
_SAFE_INTEGER_LIMIT: Final = 2**53
#: From here on, an integer is not written out with all digits, so its property is a `number` or has no value.
_INTEGER_LIMIT: Final = 10**40


def property_object(value: Json, property_types: PropertyTypes = STRING) -> dict[str, Json]:
    """The property object for a document's value, without `value` where any value matches or the value does not fit."""
    type, text = _type_and_text(value, property_types)
    constant = {"value": text} if text and fits_in_header("value", text) else {}
    return {"type": type, **constant, "required": True}


def has_value(property: Mapping[str, Json], value: Json) -> bool:
    """Whether a property object holds the document's value completely."""
    return "value" in property or value == ""


def document_value(property: Mapping[str, Json], leftover: Json, *types: str) -> Json:
    """The document's value for a property object.

    leftover: the leftover of the value. types: property types that documents write as JSON: boolean, integer, number.
    """
    value, type = property.get("value"), property.get("type")
    if not isinstance(value, str):
        return "" if leftover is None else leftover
    if type not in types:
        return value
    try:
        parsed = loads(value)
    except InvalidJson:
        return value
    is_of_type = (
        isinstance(parsed, bool) if type == "boolean" else _is_number(parsed, must_be_integer=type == "integer")
    )
    return parsed if is_of_type else value


def has_plain_placeholders(text: str) -> bool:
    """Whether a text has no placeholders except those of level 1."""
    return not has_braces(text) or not templates.template_problems(text)


def as_template(name: str, value: Json) -> str | None:
    """The value as an attribute `name` of type `uritemplate`; None where the attribute cannot hold it."""
    if not isinstance(value, str) or not value or not has_plain_placeholders(value) or not fits_in_header(name, value):
        return None
    return value if _is_template(value) else None


def as_text(name: str, value: Json) -> str | None:
    """The value as an attribute of type `string`; None where the attribute cannot hold it."""
    return (
        value
        if isinstance(value, str) and value and has_plain_placeholders(value) and fits_in_header(name, value)
        else None
    )


def as_reference(name: str, value: Json) -> str | None:
    """The value as an attribute of type `uri`, which allows no placeholders; None where it cannot be held."""
    if not isinstance(value, str) or not value or has_braces(value) or not fits_in_header(name, value):
        return None
    return value if _is_constant(value, "uri") else None


def as_media_type(value: Json) -> str | None:
    """The value as `datacontenttype`, which must be constant; None where the attribute cannot hold it."""
    if not isinstance(value, str) or has_braces(value) or not fits_in_header("datacontenttype", value):
        return None
    return value if parse_media_type(value) else None


def as_scalar(value: Json) -> bool | int | None:
    """The value as a `boolean` or `integer` attribute; None where the attribute cannot hold it."""
    if isinstance(value, bool):
        return value
    return int(value) if is_integer(value) and abs(value) < _SAFE_INTEGER_LIMIT else None


def add_leftover(leftovers: Sections, section: str, member: str, value: Json) -> None:
    """Adds a value that no attribute holds to the leftovers."""
    leftovers.setdefault(section, {})[member] = value


def open_properties(
    section: str,
    members: Mapping[str, Json],
    left: Sections,
    names: re.Pattern[str],
    types: Mapping[str, PropertyTypes] = MappingProxyType({}),
) -> dict[str, Json]:
    """The members of an open section as properties. names: of those that attributes can have; `left` gets the rest."""
    held: dict[str, Json] = {}
    for name, value in members.items():
        property = property_object(value, types.get(name, STRING))
        if names.match(name):
            held[name] = property
        if name not in held or not has_value(property, value):
            add_leftover(left, section, name, value)
    return held


def section_leftovers(leftovers: Mapping[str, Json], section: str) -> Mapping[str, Any]:
    """The leftovers of one section."""
    return as_mapping(leftovers.get(section))


def _type_and_text(value: Json, property_types: PropertyTypes) -> tuple[str, str | None]:
    """The property type of a value, and its text; None where the property cannot hold the text."""
    match value:
        case bool():
            return "boolean", "true" if value else "false"
        case int() | float() | Decimal():
            digits = _integer_digits(value)
            return (
                ("number", number_text(value))
                if digits is None and property_types.constant != "integer"
                else ("integer", digits)
            )
    if has_braces(value):
        return _template_and_text(value, property_types)
    return property_types.constant, value if _is_constant(value, property_types.constant) else None


def _integer_digits(value: float | Decimal) -> str | None:
    """The digits of an integer; None for other numbers, for too large ones, and for floats that lose digits."""
    limit = _SAFE_INTEGER_LIMIT if isinstance(value, float) else _INTEGER_LIMIT
    if not is_integer(value) or not -limit < value < limit:
        return None
    return str(int(value))


def _template_and_text(value: str, property_types: PropertyTypes) -> tuple[str, str | None]:
    if property_types.template is None or not has_plain_placeholders(value):
        return property_types.template or property_types.constant, None
    if property_types.template == "uritemplate" and not _is_template(
        value
    ):  # for example, a space outside of its placeholders
        return property_types.constant, value if property_types.constant == "string" else None
    return property_types.template, value


def _is_constant(value: str, type: str) -> bool:
    if type == "integer":
        digits = value.removeprefix("-")
        return digits.isascii() and digits.isdecimal()
    try:
        return type not in _PARSERS or bool(_PARSERS[type](value))
    except (ValueError, OverflowError):
        return False


def _is_template(value: str) -> bool:
    try:
        return bool(uris.template(value))
    except ValueError:
        return False


def _is_number(value: Json, must_be_integer: bool) -> bool:
    number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return number and (not must_be_integer or is_integer(value))
