"""A simple in-memory model of a schema registry with the rules of Confluent's API. It gives the expected responses.

Contexts are part of the names of subjects. The few Avro texts have a fixed table of which schema can read which.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

#: The texts by name. USER refers to the type that RECORD defines, and WHOLE is USER with that type inline.
TEXTS: Final = {
    "INT": '"int"',
    "LONG": '"long"',
    "BOOLEAN": '"boolean"',
    "RECORD": '{"type":"record","name":"R","fields":[]}',
    "USER": '{"type":"record","name":"U","fields":[{"name":"r","type":"R"}]}',
    "WHOLE": '{"type":"record","name":"U","fields":[{"name":"r","type":{"type":"record","name":"R","fields":[]}}]}',
}
VERSION: Final = "confluent:version"
_READS: Final = {("LONG", "INT"), ("USER", "WHOLE"), ("WHOLE", "USER")}


class Refused(Exception):
    """The code of an error."""


class Content(NamedTuple):
    text: str
    reference: tuple[str, int] | None
    properties: frozenset[tuple[str, str]]


@dataclass
class Version:
    number: int
    id: int
    content: Content
    deleted: bool = False


class Register(NamedTuple):
    """A registration. reference: the subject and number of a version with RECORD. owner: the value of a property."""

    text: str
    reference: tuple[str, int] | None = None
    owner: str | None = None
    version: int | None = None
    force: bool = False


@dataclass
class Model:
    """The state, and the calls that change or read it. Each call returns its result or raises Refused."""

    subjects: dict[str, list[Version]] = field(default_factory=dict)
    ids: dict[Content, int] = field(default_factory=dict)
    levels: dict[str, str] = field(default_factory=dict)
    modes: dict[str, str] = field(default_factory=dict)

    def register(self, name: str, request: Register) -> tuple[int, int]:
        """The number and the id of the version (CSR-502, CSR-505, CSR-511, CSR-512)."""
        versions = self.subjects.get(name, [])
        live = [one for one in versions if not one.deleted]
        given = self._content(request)
        inherited = given.properties or (live[-1].content.properties if live else frozenset())
        merged = given._replace(properties=inherited)
        candidates = {None: live, -1: live[-1:]}.get(
            request.version, [one for one in live if one.number == request.version]
        )
        for content in (given, merged):
            if (known := self._matching(content, candidates)) is not None:
                return known.number, known.id
        self._check_mode(name)
        if request.reference is not None:
            self._referenced(request.reference, only_live=True)
        if live and not request.force and not self._is_compatible(name, merged.text, live[-1].content.text):
            raise Refused(409)
        number = 1 + max((one.number for one in versions), default=0)
        if request.version not in (None, -1, number):
            raise Refused(42201)
        if request.version is not None or VERSION in dict(merged.properties):
            merged = merged._replace(properties=frozenset({*dict(merged.properties, **{VERSION: str(number)}).items()}))
        id = self.ids.setdefault(merged, 1 + max(self.ids.values(), default=0))
        remaining = [
            one
            for one in versions
            if not (one.deleted and one.id == id and not [*self._referrers(name, one.number, with_deleted=True)])
        ]
        self.subjects[name] = [*remaining, Version(number, id, merged)]
        return number, id

    def look_up(self, name: str, request: Register, deleted: bool) -> tuple[int, int]:
        """The number and the id of the version (CSR-503)."""
        given = self._content(request)
        versions = self.subjects.get(name, [])
        seen = [one for one in versions if deleted or not one.deleted]
        live = [one for one in seen if not one.deleted]
        if not seen:
            raise Refused(40401)
        inherited = given.properties or (live[-1].content.properties if live else frozenset())
        for content in (given, given._replace(properties=inherited)):
            if (known := self._matching(content, seen)) is not None:
                return known.number, known.id
        raise Refused(40403)

    def delete_subject(self, name: str, permanent: bool) -> list[int]:
        """The numbers of the deleted versions (CSR-602)."""
        versions = self.subjects.get(name, [])
        targets = [one for one in versions if permanent or not one.deleted]
        if not versions or not targets:
            raise Refused(40404 if versions else 40401)
        self._check_mode(name)
        for one in targets:
            if any(referrer != name for referrer in self._referrers(name, one.number, with_deleted=permanent)):
                raise Refused(42206)
            if permanent and not one.deleted:
                raise Refused(40405)
        return self._delete(name, targets, permanent)

    def delete_version(self, name: str, number: int | None, permanent: bool) -> int:
        """The number of the deleted version. number: None for the latest (CSR-603)."""
        versions = self.subjects.get(name, [])
        live = [one for one in versions if not one.deleted]
        if not versions or (number is None and not live and not permanent):
            raise Refused(40401)
        targets = live[-1:] if number is None else [one for one in versions if one.number == number]
        if not targets:
            raise Refused(40402)
        if targets[0].deleted and not permanent:
            raise Refused(40406)
        self._check_mode(name)
        if any(self._referrers(name, targets[0].number, with_deleted=permanent)):
            raise Refused(42206)
        if permanent and not targets[0].deleted:
            raise Refused(40407)
        return self._delete(name, targets, permanent)[0]

    def set_level(self, name: str, level: str | None) -> str:
        """The new level, or the old one if it is removed (CSR-702, CSR-706, CSR-710)."""
        if self.mode(name) == "READONLY":
            raise Refused(42205)
        return self._set(self.levels, name, level)

    def set_mode(self, name: str, mode: str | None) -> str:
        """The new mode, or the old one if it is removed (CSR-707, CSR-708)."""
        return self._set(self.modes, name, mode)

    def level(self, name: str) -> str:
        """The level in scope (CSR-704)."""
        return self.levels.get(name) or "BACKWARD"

    def mode(self, name: str) -> str:
        return self.modes.get(name) or "READWRITE"

    def schemas(self) -> Iterator[tuple[str, Version]]:
        """All versions, by subject and number (CSR-201 R12)."""
        yield from ((name, version) for name in sorted(self.subjects) for version in self.subjects[name])

    # --- details -----------------------------------------------------------------------------------------------------

    def _content(self, request: Register) -> Content:
        if request.reference is not None:
            self._referenced(request.reference, only_live=False)
        if request.text == "USER" and request.reference is None:
            raise Refused(42201)
        properties = {"owner": request.owner} if request.owner else {}
        return Content(request.text, request.reference, frozenset(properties.items()))

    def _is_compatible(self, name: str, new: str, old: str) -> bool:
        return self.level(name) == "NONE" or new == old or (new, old) in _READS

    def _referenced(self, reference: tuple[str, int], only_live: bool) -> None:
        name, number = reference
        found = [one for one in self.subjects.get(name, []) if one.number == number and not (only_live and one.deleted)]
        if not found or found[0].content.text != "RECORD":
            raise Refused(42201)

    def _matching(self, content: Content, versions: list[Version]) -> Version | None:
        exact = [one for one in versions if one.content == content]
        return next(iter((exact or [one for one in versions if self._differs_in_form(content, one)])[::-1]), None)

    def _differs_in_form(self, content: Content, version: Version) -> bool:
        """CSR-509, CSR-512: the same schema, but one side lacks references or the property with the version number."""
        own, other = dict(content.properties), dict(version.content.properties)
        own_version, other_version = own.pop(VERSION, None), other.pop(VERSION, None)
        if own != other or (own_version and own_version != (other_version or str(version.number))):
            return False
        text, reference = version.content.text, version.content.reference
        if reference is not None and content.reference is None:
            return (content.text, text) == ("WHOLE", "USER")
        return (content.text, content.reference) == (text, reference)

    def _referrers(self, name: str, number: int, with_deleted: bool) -> Iterator[str]:
        for subject, version in self.schemas():
            if version.content.reference == (name, number) and (with_deleted or not version.deleted):
                yield subject

    def _check_mode(self, name: str) -> None:
        if self.mode(name) == "READONLY":
            raise Refused(42205)

    def _delete(self, name: str, targets: list[Version], permanent: bool) -> list[int]:
        numbers = [one.number for one in targets]
        for one in targets:
            one.deleted = True
        if permanent:
            self.subjects[name] = [one for one in self.subjects[name] if one.number not in numbers]
        if not self.subjects[name]:
            for settings in (self.subjects, self.levels, self.modes):
                settings.pop(name, None)
        return numbers

    def _set(self, settings: dict[str, str], name: str, value: str | None) -> str:
        if value is None and name not in settings:
            raise Refused(40401)
        answer = value if value is not None else settings.pop(name)
        if value is not None:
            settings[name] = value
        return answer


def facts(model: Model) -> Mapping[str, Any]:
    """The expected results of all reads of a registry (CSR-201 R2, R5, R12, R15, R19, R20)."""
    holders: dict[int, list[tuple[str, int]]] = {}
    for name, version in sorted(model.schemas(), key=lambda one: one[0].startswith(":.")):
        others = holders.setdefault(version.id, [])
        if not (others and name.startswith(":.") and not others[0][0].startswith(":.")):
            others.append((name, version.number))
    return {
        "subjects": sorted(
            name for name, versions in model.subjects.items() if not all(one.deleted for one in versions)
        ),
        "schemas": [(name, one.number, one.id, TEXTS[one.content.text], one.deleted) for name, one in model.schemas()],
        "holders": holders,
        "levels": dict(model.levels),
        "modes": dict(model.modes),
    }
