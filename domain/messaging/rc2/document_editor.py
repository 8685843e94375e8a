"""Editing a document, with a report of what was changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from domain.values.json_text import Json

Members = dict[str, Json]


class DialectMismatch(ValueError):
    """A document is not in the form that a dialect takes; the message says why."""


class DocumentChange(NamedTuple):
    """One change. path: JSON pointer to the object that was changed, in the document as it came.

    was: the members that it had; now: those in their place, none where they are left out.
    """

    path: str
    was: Members
    now: Members
    why: str

    def members(self) -> dict[str, Any]:
        """The change as reports show it."""
        return {"path": self.path, "from": self.was, "to": self.now, "why": self.why}


@dataclass(frozen=True, slots=True)
class TranslatedDocument:
    """A tree for a write of the registry's Groups, and what was changed to make it."""

    tree: dict[str, Json]
    report: tuple[DocumentChange, ...]


class ObjectEditor:
    """An object of a document on its way: a copy of its own, whose place in the document is known."""

    def __init__(self, members: Members, path: str, report: list[DocumentChange]) -> None:
        self.members = dict(members)
        self.path = path
        self._report = report

    def change(self, names: Iterable[str], now: Members, why: str) -> None:
        """Puts members in the place of others."""
        was = {name: self.members.pop(name) for name in names if name in self.members}
        self.members |= now
        self._report.append(DocumentChange(self.path, was, now, why))

    def rename(self, old: str, new: str, why: str) -> None:
        """Gives a member its new name, if it is there and nothing has that name yet."""
        if old in self.members and new not in self.members:
            self.change((old,), {new: self.members[old]}, why)

    def drop(self, names: Iterable[str], why: str) -> None:
        """Leaves members out, if any are there."""
        if found := [name for name in names if name in self.members]:
            self.change(found, {}, why)

    def inside(self, name: str) -> ObjectEditor | None:
        """The object under a name, which takes its place here; None where there is no object."""
        value = self.members.get(name)
        return self._put(self.members, name, value, name) if isinstance(value, dict) else None

    def each(self, name: str) -> Iterator[tuple[str, ObjectEditor]]:
        """The objects in the map under a name, with their keys."""
        entries = self.members.get(name)
        if not isinstance(entries, dict):
            return
        copied = self.members[name] = dict(entries)
        for key, value in entries.items():
            if isinstance(value, dict):
                yield key, self._put(copied, key, value, name, key)

    def items(self, name: str) -> Iterator[ObjectEditor]:
        """The objects in the array under a name."""
        found = self.members.get(name)
        if not isinstance(found, list):
            return
        copied = self.members[name] = list(found)
        for index, value in enumerate(found):
            if isinstance(value, dict):
                yield self._put(copied, index, value, name, str(index))

    def _put(self, holder: Any, key: Any, value: Members, *steps: str) -> ObjectEditor:
        found = ObjectEditor(value, self.path + json_pointer(*steps), self._report)
        holder[key] = found.members
        return found


def json_pointer(*steps: str) -> str:
    """A JSON pointer (RFC 6901)."""
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)
