"""What attributes of messages can hold of the values in documents, and the property objects that most of them are.

A template is held where it is one of level 1, because the registry's rules know no other (CM-12). The text of an
attribute has to fit in a header (ENT-13). Rules MS-34, § 12.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from domain.compat.catalog.metaschema import Sections, has_braces, is_integer
from domain.messaging import templates
from domain.messaging.findings.unchecked_values import as_mapping, parse_media_type
from domain.model import rfc3339, uris
from domain.model.values import MAX_HEADER_BYTES
from domain.values.json_text import InvalidJson, Json, loads, number_text


class PropertyTypes(NamedTuple):
    """The types of a property: of its constants, and of its templates, None where it can hold none."""

    constant: str
    template: str | None = None


STRING: Final = PropertyTypes("string", "uritemplate")

#: What takes the constants of a type; of all others any text is one. A URI stands where the model wants a template.
_PARSERS: Final[Mapping[str, Callable[[str], str]]] = {
    "timestamp": rfc3339.to_utc,
    "uri": lambda value: uris.template(uris.reference(value)),
}
#: From here on a float does not have all digits of an integer, and not all readers of JSON have them.
_SAFE: Final = 2**53
#: Integers from here on are not written out.
_LARGE: Final = 10**40


def property_object(value: Json, slot: PropertyTypes = STRING) -> dict[str, Json]:
    """The property object of a document's value; without its own `value` for any value, and where that is not held."""
    type, text = _typed(value, slot)
    held = {"value": text} if text and fits_in_header("value", text) else {}
    return {"type": type, **held, "required": True}


def holds_value(property: Mapping[str, Json], value: Json) -> bool:
    """Whether a property object says all that the document's value does."""
    return "value" in property or value == ""


def document_value(property: Mapping[str, Json], left: Json, *types: str) -> Json:
    """The document's value of a property object.

    left: what was left of the value. types: those that are more than text in the document: boolean, integer, number.
    """
    value, type = property.get("value"), property.get("type")
    if not isinstance(value, str):
        return "" if left is None else left
    if type not in types:
        return value
    try:
        meant = loads(value)
    except InvalidJson:
        return value
    fitting = isinstance(meant, bool) if type == "boolean" else _is_number(meant, whole=type == "integer")
    return meant if fitting else value


def has_plain_placeholders(text: str) -> bool:
    """Whether a text has no placeholders but those of level 1."""
    return not has_braces(text) or not templates.template_problems(text)


def as_template(name: str, value: Json) -> str | None:
    """A value as an attribute of type `uritemplate` holds it under a name; None where it cannot."""
    if not isinstance(value, str) or not value or not has_plain_placeholders(value) or not fits_in_header(name, value):
        return None
    return value if _is_template(value) else None


def as_text(name: str, value: Json) -> str | None:
    """The same for a `string`."""
    return (
        value
        if isinstance(value, str) and value and has_plain_placeholders(value) and fits_in_header(name, value)
        else None
    )


def as_reference(name: str, value: Json) -> str | None:
    """The same for a `uri`, which has no placeholders at all."""
    if not isinstance(value, str) or not value or has_braces(value) or not fits_in_header(name, value):
        return None
    return value if _is_constant(value, "uri") else None


def as_media_type(value: Json) -> str | None:
    """The same for `datacontenttype`, whose value is constant."""
    if not isinstance(value, str) or has_braces(value) or not fits_in_header("datacontenttype", value):
        return None
    return value if parse_media_type(value) else None


def as_scalar(value: Json) -> bool | int | None:
    """The same for a `boolean` or an `integer`."""
    if isinstance(value, bool):
        return value
    return int(value) if is_integer(value) and abs(value) < _SAFE else None


def fits_in_header(name: str, text: str) -> bool:
    """Whether a scalar attribute is small enough (ENT-13)."""
    return len(name.encode()) + len(text.encode()) <= MAX_HEADER_BYTES


def add_leftover(left: Sections, section: str, member: str, value: Json) -> None:
    """Notes a value that no attribute holds."""
    left.setdefault(section, {})[member] = value


def section_leftovers(left: Mapping[str, Json], section: str) -> Mapping[str, Any]:
    """What was left of a section."""
    return as_mapping(left.get(section))


def _typed(value: Json, slot: PropertyTypes) -> tuple[str, str | None]:
    """The type of a value and its text, None where it is not held."""
    match value:
        case bool():
            return "boolean", "true" if value else "false"
        case int() | float() | Decimal():
            digits = _digits(value)
            return (
                ("number", number_text(value)) if digits is None and slot.constant != "integer" else ("integer", digits)
            )
    if has_braces(value):
        return _templated(value, slot)
    return slot.constant, value if _is_constant(value, slot.constant) else None


def _digits(value: float | Decimal) -> str | None:
    """The digits of an integer; None where there are too many, or the number is none or does not have them all."""
    most = _SAFE if isinstance(value, float) else _LARGE
    if not is_integer(value) or not -most < value < most:
        return None
    return str(int(value))


def _templated(value: str, slot: PropertyTypes) -> tuple[str, str | None]:
    if slot.template is None or not has_plain_placeholders(value):
        return slot.template or slot.constant, None
    if slot.template == "uritemplate" and not _is_template(value):  # a space, say, outside of its placeholders
        return slot.constant, value if slot.constant == "string" else None
    return slot.template, value


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


def _is_number(value: Json, whole: bool) -> bool:
    number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return number and (not whole or is_integer(value))
