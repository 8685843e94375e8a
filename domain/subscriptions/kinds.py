"""What the members of a subscription may be: small checks that know how they are described to clients (SUB-506)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from domain.jsontext import Json
from domain.subscriptions.places import Place

#: Gives what is kept of a value. Raises: InvalidSubscription.
Parse = Callable[[Any, Place], Json]

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Kind:
    """type: its name for clients. facts: more members of its description."""

    type: str
    parse: Parse
    facts: Mapping[str, Json] = field(default_factory=dict)


class Absent(Enum):
    """No default."""

    ABSENT = ""


ABSENT: Final = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an object."""

    kind: Kind
    default: Json | Absent = ABSENT
    required: bool = False

    def described(self) -> dict[str, Json]:
        """What clients are told of it."""
        given = {"default": self.default} if self.default is not ABSENT else {}
        return {"type": self.kind.type, "required": self.required, **given, **self.kind.facts}


Table = Mapping[str, Member]


def object_of(given: Any, place: Place) -> dict[str, Any]:
    """A JSON object, without the members that are null (SUB-102). Raises: InvalidSubscription."""
    if not isinstance(given, dict):
        raise place.refused("type", "an object is needed")
    return {name: value for name, value in given.items() if value is not None}


def read(given: Mapping[str, Any], table: Table, place: Place) -> dict[str, Json]:
    """The members of an object with their defaults, in the order of a table. Raises: InvalidSubscription."""
    for name in given:
        if name not in table:
            raise place.at(name).refused("unknown", f"there is no such member, only {', '.join(table) or 'none'}")
    found: dict[str, Json] = {}
    for name, member in table.items():
        if name in given:
            found[name] = member.kind.parse(given[name], place.at(name))
        elif member.required:
            raise place.at(name).refused("required", "it is needed")
        elif member.default is not ABSENT:
            found[name] = member.default
    return found


def line(given: Any, place: Place) -> str:
    """A string that is not empty and fits into a header, a topic or a URL (SUB-907)."""
    if not isinstance(given, str):
        raise place.refused("type", "a string is needed")
    if not given:
        raise place.refused("value", "it is empty")
    if _CONTROL.search(given):
        raise place.refused("value", "it has control characters")
    return given


TEXT: Final = Kind("string", line)


def matching(pattern: str, reason: str, most: int | None = None) -> Kind:
    """A string of a form. most: bytes at most."""
    form = re.compile(rf"(?:{pattern})\Z", re.DOTALL)

    def parse(given: Any, place: Place) -> str:
        text = line(given, place)
        if not form.match(text):
            raise place.refused("value", reason)
        if most is not None and len(text.encode()) > most:
            raise place.refused("value", f"it has more than {most} bytes")
        return text

    return Kind("string", parse)


def one_of(*values: str) -> Kind:
    """One of some words, in their case."""

    def parse(given: Any, place: Place) -> str:
        if not isinstance(given, str):
            raise place.refused("type", "a string is needed")
        if given not in values:
            raise place.refused("value", f"it is none of {', '.join(values)}")
        return given

    return Kind("string", parse, {"values": list(values)})


def integer(low: int, high: int) -> Kind:
    """A whole number in a range."""

    def parse(given: Any, place: Place) -> int:
        if type(given) is not int:
            raise place.refused("type", "a whole number is needed")
        if not low <= given <= high:
            raise place.refused("value", f"it is not from {low} to {high}")
        return given

    return Kind("integer", parse, {"minimum": low, "maximum": high})


def number(low: float, high: float) -> Kind:
    """A number in a range."""

    def parse(given: Any, place: Place) -> int | float:
        if type(given) not in (int, float):
            raise place.refused("type", "a number is needed")
        if not low <= given <= high:
            raise place.refused("value", f"it is not from {low} to {high}")
        found: int | float = given
        return found

    return Kind("number", parse, {"minimum": low, "maximum": high})


def _boolean(given: Any, place: Place) -> bool:
    if not isinstance(given, bool):
        raise place.refused("type", "true or false is needed")
    return given


BOOLEAN: Final = Kind("boolean", _boolean)


def map_of(name: Kind, value: Kind) -> Kind:
    """A map of strings, keys and values of some form."""

    def parse(given: Any, place: Place) -> dict[str, Json]:
        members = object_of(given, place)
        return {
            str(name.parse(key, place.at(key))): value.parse(member, place.at(key)) for key, member in members.items()
        }

    return Kind("map", parse, {"item": {"type": value.type}})


def structure(table: Table, check: Callable[[dict[str, Json], Place], None] = lambda found, place: None) -> Kind:
    """An object of known members. check: what has to hold among them."""

    def parse(given: Any, place: Place) -> dict[str, Json]:
        found = read(object_of(given, place), table, place)
        check(found, place)
        return found

    return Kind("object", parse, {"members": described(table)})


def described(table: Table) -> dict[str, Json]:
    """What clients are told of the members of an object."""
    return {name: member.described() for name, member in table.items()}
