"""Edits a document and reports the changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from domain.values.json_pointer import join_pointer
from domain.values.json_text import Json

Members = dict[str, Json]


class DialectMismatch(ValueError):
    """A document is not in the form of a dialect; the message says why."""


class DocumentChange(NamedTuple):
    """One change. path: JSON pointer to the changed object, in the original document.

    was: the members that it had; now: those that replace them, empty if they are removed.
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
    """A tree for a write of the registry's Groups, and the changes that produced it."""

    tree: dict[str, Json]
    report: tuple[DocumentChange, ...]


class ObjectEditor:
    """An object of a document while it is edited: a copy, with its place in the document."""

    def __init__(self, members: Members, path: str, report: list[DocumentChange]) -> None:
        self.members = dict(members)
        self.path = path
        self._report = report

    def change(self, names: Iterable[str], now: Members, why: str) -> None:
        """Replaces members with others."""
        was = {name: self.members.pop(name) for name in names if name in self.members}
        self.members |= now
        self._report.append(DocumentChange(self.path, was, now, why))

    def rename(self, old: str, new: str, why: str) -> None:
        """Renames a member, if it exists and the new name is free."""
        if old in self.members and new not in self.members:
            self.change((old,), {new: self.members[old]}, why)

    def drop(self, names: Iterable[str], why: str) -> None:
        """Removes members, if any exist."""
        if found := [name for name in names if name in self.members]:
            self.change(found, {}, why)

    def nested_object(self, name: str) -> ObjectEditor | None:
        """An editor of the object under a name, whose edits apply here; None if it is not an object."""
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
        found = ObjectEditor(value, join_pointer(self.path, *steps), self._report)
        holder[key] = found.members
        return found
