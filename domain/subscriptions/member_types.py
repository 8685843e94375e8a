"""The types of the members of a subscription: small checks that can describe themselves to clients (SUB-506)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from annals.domain.model.validation.rfc3339 import to_utc
from annals.domain.subscriptions.error_places import ErrorPlace
from annals.domain.values.json_text import Json

#: Returns the value to store. Raises: InvalidSubscription.
ParseMember = Callable[[Any, ErrorPlace], Json]

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class MemberType:
    """type: its name for clients. description_members: additional members of its description."""

    type: str
    parse: ParseMember
    description_members: Mapping[str, Json] = field(default_factory=dict)


class NoDefault(Enum):
    """No default."""

    ABSENT = ""


ABSENT: Final = NoDefault.ABSENT


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an object."""

    kind: MemberType
    default: Json | NoDefault = ABSENT
    required: bool = False

    def describe(self) -> dict[str, Json]:
        """Its description for clients."""
        default_member = {"default": self.default} if self.default is not ABSENT else {}
        return {"type": self.kind.type, "required": self.required, **default_member, **self.kind.description_members}


MemberTable = Mapping[str, Member]


def parse_object(candidate: Any, place: ErrorPlace) -> dict[str, Any]:
    """A JSON object, without the members that are null (SUB-102). Raises: InvalidSubscription."""
    if not isinstance(candidate, dict):
        raise place.error("type", "an object is needed")
    return {name: value for name, value in candidate.items() if value is not None}


def parse_members(members: Mapping[str, Any], table: MemberTable, place: ErrorPlace) -> dict[str, Json]:
    """The members of an object with their defaults, in the order of a table. Raises: InvalidSubscription."""
    for name in members:
        if name not in table:
            raise place.child(name).error(
                "unknown", f"the member is unknown; known members: {', '.join(table) or 'none'}"
            )
    parsed: dict[str, Json] = {}
    for name, member in table.items():
        if name in members:
            parsed[name] = member.kind.parse(members[name], place.child(name))
        elif member.required:
            raise place.child(name).error("required", "it is needed")
        elif member.default is not ABSENT:
            parsed[name] = member.default
    return parsed


def parse_line(value: Any, place: ErrorPlace) -> str:
    """A string that is not empty and fits into a header, a topic or a URL (SUB-907)."""
    if not isinstance(value, str):
        raise place.error("type", "a string is needed")
    if not value:
        raise place.error("value", "it is empty")
    if _CONTROL.search(value):
        raise place.error("value", "it has control characters")
    return value


def parse_time(given: Any, place: ErrorPlace) -> str:
    """A timestamp in UTC."""
    try:
        return to_utc(parse_line(given, place))
    except (ValueError, OverflowError) as error:
        raise place.error("value", str(error)) from None


TEXT: Final = MemberType("string", parse_line)


def pattern_type(pattern: str, reason: str, max_bytes: int | None = None) -> MemberType:
    """A string that matches a pattern."""
    compiled_pattern = re.compile(rf"(?:{pattern})\Z", re.DOTALL)

    def parse(value: Any, place: ErrorPlace) -> str:
        text = parse_line(value, place)
        if not compiled_pattern.match(text):
            raise place.error("value", reason)
        if max_bytes is not None and len(text.encode()) > max_bytes:
            raise place.error("value", f"it has more than {max_bytes} bytes")
        return text

    return MemberType("string", parse)


def choice_type(*values: str) -> MemberType:
    """One of several case-sensitive words."""

    def parse(value: Any, place: ErrorPlace) -> str:
        if not isinstance(value, str):
            raise place.error("type", "a string is needed")
        if value not in values:
            raise place.error("value", f"it is not one of: {', '.join(values)}")
        return value

    return MemberType("string", parse, {"values": list(values)})


def integer_type(minimum: int, maximum: int) -> MemberType:
    """A whole number in a range."""

    def parse(value: Any, place: ErrorPlace) -> int:
        if type(value) is not int:
            raise place.error("type", "a whole number is needed")
        if not minimum <= value <= maximum:
            raise place.error("value", f"it is not from {minimum} to {maximum}")
        return value

    return MemberType("integer", parse, {"minimum": minimum, "maximum": maximum})


def number_type(minimum: float, maximum: float) -> MemberType:
    """A number in a range."""

    def parse(value: Any, place: ErrorPlace) -> int | float:
        if type(value) not in (int, float, Decimal):  # the last for texts such as 2.50, which JSON keeps exactly
            raise place.error("type", "a number is needed")
        if not minimum <= value <= maximum:
            raise place.error("value", f"it is not from {minimum} to {maximum}")
        return value if isinstance(value, int) else float(value)

    return MemberType("number", parse, {"minimum": minimum, "maximum": maximum})


def _parse_boolean(value: Any, place: ErrorPlace) -> bool:
    if not isinstance(value, bool):
        raise place.error("type", "true or false is needed")
    return value


BOOLEAN: Final = MemberType("boolean", _parse_boolean)


def map_type(key_type: MemberType, value_type: MemberType) -> MemberType:
    """A map whose keys are strings."""

    def parse(candidate: Any, place: ErrorPlace) -> dict[str, Json]:
        members = parse_object(candidate, place)
        return {
            str(key_type.parse(key, place.child(key))): value_type.parse(member, place.child(key))
            for key, member in members.items()
        }

    return MemberType("map", parse, {"item": {"type": value_type.type}})


def object_type(
    table: MemberTable, check: Callable[[dict[str, Json], ErrorPlace], None] = lambda found, place: None
) -> MemberType:
    """An object of known members. check: validates the members together."""

    def parse(value: Any, place: ErrorPlace) -> dict[str, Json]:
        members = parse_members(parse_object(value, place), table, place)
        check(members, place)
        return members

    return MemberType("object", parse, {"members": describe_members(table)})


def describe_members(table: MemberTable) -> dict[str, Json]:
    """The descriptions of an object's members for clients."""
    return {name: member.describe() for name, member in table.items()}
