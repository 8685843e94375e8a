"""Edits a document and reports the changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from annals.domain.values.json_pointer import join_pointer
from annals.domain.values.json_text import Json

Members = dict[str, Json]


class DialectMismatch(ValueError):
    """A document is not in the form of a dialect; the message says why."""


class DocumentChange(NamedTuple):
    """One change. path: JSON pointer to the changed object, in the original document.

    before: the members that it had; after: those that replace them, empty if they are removed.
    """

    path: str
    before: Members
    after: Members
    reason: str

    def members(self) -> dict[str, Any]:
        """The change as reports show it."""
        return {"path": self.path, "from": self.before, "to": self.after, "why": self.reason}


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

    def change(self, names: Iterable[str], new_members: Members, reason: str) -> None:
        """Replaces members with others."""
        old_members = {name: self.members.pop(name) for name in names if name in self.members}
        self.members |= new_members
        self._report.append(DocumentChange(self.path, old_members, new_members, reason))

    def rename(self, old: str, new: str, reason: str) -> None:
        """Renames a member, if it exists and the new name is free."""
        if old in self.members and new not in self.members:
            self.change((old,), {new: self.members[old]}, reason)

    def drop(self, names: Iterable[str], reason: str) -> None:
        """Removes members, if any exist."""
        if present := [name for name in names if name in self.members]:
            self.change(present, {}, reason)

    def nested_object(self, name: str) -> ObjectEditor | None:
        """An editor of the object under a name, whose edits apply here; None if it is not an object."""
        value = self.members.get(name)
        return self._nested_editor(self.members, name, value, name) if isinstance(value, dict) else None

    def objects_by_key(self, name: str) -> Iterator[tuple[str, ObjectEditor]]:
        """The objects in the map under a name, with their keys."""
        entries = self.members.get(name)
        if not isinstance(entries, dict):
            return
        new_entries = self.members[name] = dict(entries)
        for key, value in entries.items():
            if isinstance(value, dict):
                yield key, self._nested_editor(new_entries, key, value, name, key)

    def objects(self, name: str) -> Iterator[ObjectEditor]:
        """The objects in the array under a name."""
        elements = self.members.get(name)
        if not isinstance(elements, list):
            return
        new_elements = self.members[name] = list(elements)
        for index, value in enumerate(elements):
            if isinstance(value, dict):
                yield self._nested_editor(new_elements, index, value, name, str(index))

    def _nested_editor(self, container: Any, key: Any, value: Members, *steps: str) -> ObjectEditor:
        editor = ObjectEditor(value, join_pointer(self.path, *steps), self._report)
        container[key] = editor.members
        return editor
