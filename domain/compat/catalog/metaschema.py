"""The parts of a metaschema: sections of named members, and checks for the values of members.

A value is a literal of its member's kind, a URI template of any level, or the empty text, which matches any value.
Spec: RFC 6570. Rules LEG-802, § 8.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, Protocol

from annals.domain.messaging.findings import unchecked_values
from annals.domain.messaging.findings.kafka import is_base64
from annals.domain.model.validation import rfc3339, uris
from annals.domain.values.json_pointer import join_pointer
from annals.domain.values.json_text import Json

#: Returns why a value is invalid, as the end of a sentence; None where it is valid.
LiteralCheck = Callable[[Any], str | None]
#: A document by sections, without null members. The values that attributes cannot hold have the same shape.
Sections = dict[str, Json]

_BRACES: Final = re.compile(r"\{[^{}]*\}|[{}]")
#: The maximum number of characters of a document that an error message repeats.
_MAX_FRAGMENT: Final = 100


class MalformedDefinition(ValueError):
    """A document is not a valid definition of its format.

    text: the problem, as a sentence without its full stop. pointer: a JSON Pointer to it; empty for the whole document.
    """

    def __init__(self, text: str, *path: str) -> None:
        self.text = text
        self.pointer = join_pointer("", *path)
        super().__init__(f"{self.pointer}: {text}" if path else text)


@dataclass(frozen=True, slots=True)
class Section:
    """One section of a metaschema.

    members: checks of the named members. check_others: the check of all other members; None where there may be none.
    names: the check of the names of those others.
    """

    members: Mapping[str, LiteralCheck] = field(default_factory=dict)
    check_others: LiteralCheck | None = None
    check_name: LiteralCheck = lambda name: None


class Metaschema(Protocol):
    """The interface of a format module."""

    @property
    def SECTIONS(self) -> Mapping[str, Section] | None:
        """All sections; None where any content is valid."""

    @property
    def DATASCHEMA(self) -> tuple[str, str]:
        """The section and the member that refer to the schema of the message data."""

    def check(self, sections: Sections, /) -> None:
        """Checks the rules beyond SECTIONS, after SECTIONS was checked. Raises: MalformedDefinition."""

    def to_attributes(self, sections: Sections, leftovers: Sections, /) -> dict[str, Json]:
        """The attributes equivalent to valid sections.

        Adds what they cannot hold to `leftovers`, except for DATASCHEMA.
        """

    def to_document(self, attributes: Mapping[str, Json], leftovers: Sections, /) -> Sections:
        """The document for attributes and leftovers. Where both have a value for one member, the attributes win."""


def check_sections(metaschema: Mapping[str, Section], sections: Mapping[str, Json]) -> None:
    """Checks every member of every section. O(length of the document). Raises: MalformedDefinition."""
    for name, members in sections.items():
        section = metaschema.get(name)
        if section is None:
            raise MalformedDefinition("the section is unknown", name)
        if not isinstance(members, dict):
            raise MalformedDefinition("a section has to be a JSON object", name)
        for member, value in members.items():
            if value is not None and (reason := _member_error(section, member, value)):
                raise MalformedDefinition(reason, name, member)


def _member_error(section: Section, name: str, value: Json) -> str | None:
    check = section.members.get(name)
    if check is None:
        if section.check_others is None:
            return "the member is unknown"
        if reason := section.check_name(name):
            return reason
        check = section.check_others
    if value == "":
        return None
    return template_error(value) if isinstance(value, str) and has_braces(value) else check(value)


def has_braces(text: str) -> bool:
    """Whether a text contains a brace, which only templates have."""
    return "{" in text or "}" in text


def template_error(text: str) -> str | None:
    """Why a text is not a URI template; None where it is. The text outside of braces may be anything."""
    for match in _BRACES.finditer(text):
        try:
            uris.template(match[0])
        except ValueError:
            return f"{match[0][:_MAX_FRAGMENT]} is not an expression of a URI template (RFC 6570)"
    return None


def without_nulls(members: Json) -> Json:
    """An object without null members, because null means absent; any other value unchanged."""
    if not isinstance(members, dict):
        return members
    return {name: value for name, value in members.items() if value is not None}


def text(value: Json) -> str | None:
    return None if isinstance(value, str) else "it is not a string"


def boolean(value: Json) -> str | None:
    return None if isinstance(value, bool) else "it is not true or false"


def scalar(value: Json) -> str | None:
    return "it is an object or an array" if isinstance(value, dict | list) else None


def timestamp(value: Json) -> str | None:
    return _parse_error(rfc3339.to_utc, value, "it is not a timestamp (RFC 3339)")


def binary(value: Json) -> str | None:
    return None if isinstance(value, str) and is_base64(value) else "it is not base64"


def media_type(value: Json) -> str | None:
    return (
        None
        if isinstance(value, str) and unchecked_values.parse_media_type(value)
        else "it is not a media type (RFC 2046)"
    )


def integer(low: int, high: int | None = None) -> LiteralCheck:
    """A check for integers in a range, both ends included; `1.0` is an integer."""
    reason = f"it is not an integer from {low} on" if high is None else f"it is not an integer from {low} to {high}"

    def kind(value: Json) -> str | None:
        is_in_range = is_integer(value) and low <= value and (high is None or value <= high)
        return None if is_in_range else reason

    return kind


def is_integer(value: Json) -> bool:
    """Whether a JSON value is a number without a fraction, such as `1` or `1.0`."""
    if isinstance(value, Decimal):
        return value == value.to_integral_value()
    return type(value) is int or (isinstance(value, float) and value.is_integer())


def one_of(*allowed: str) -> LiteralCheck:
    """A check for one of the allowed values."""
    return lambda value: None if value in allowed else f"it is not {' or '.join(allowed)}"


def parsable_by(parse: Callable[[str], Any]) -> LiteralCheck:
    """A check for strings that `parse` accepts. The text of its ValueError becomes the reason."""

    def kind(value: Json) -> str | None:
        if not isinstance(value, str):
            return "it is not a string"
        try:
            parse(value)
        except ValueError as error:
            return str(error)
        return None

    return kind


def _parse_error(parse: Callable[[str], Any], value: Json, reason: str) -> str | None:
    try:
        return None if isinstance(value, str) and parse(value) else reason
    except (ValueError, OverflowError):
        return reason
