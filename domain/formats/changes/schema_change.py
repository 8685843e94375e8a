"""One change between two documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from annals.domain.formats import COMPATIBILITIES
from annals.domain.formats.contract import DocumentLocation, Incompatibility


class ChangeKind(StrEnum):
    """What happened to a part of a document."""

    ADDED = "added"
    REMOVED = "removed"
    TYPE_CHANGED = "typechanged"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A change of one part, from the left document to the right one.

    path: of the field or declaration, see `fields.py`; empty for the document itself. name: of the part, by which
    incompatibilities mention it. left, right: its location in either document; None where it is not there. before,
    after: what it was and is, None where it was or is nothing. backward, forward: why the right document does not read
    data of the left one, and the left one data of the right one; None where nothing prevents it here.
    """

    kind: ChangeKind
    path: str
    name: str
    left: DocumentLocation | None
    right: DocumentLocation | None
    before: str | None = None
    after: str | None = None
    backward: Incompatibility | None = None
    forward: Incompatibility | None = None

    def members(self) -> dict[str, Any]:
        """The change as JSON."""
        return {
            "change": self.kind.value,
            "path": self.path,
            "left": _location_members(self.left),
            "right": _location_members(self.right),
            "before": self.before,
            "after": self.after,
            "backward": _verdict_members(self.backward),
            "forward": _verdict_members(self.forward),
        }


class DocumentChanges(NamedTuple):
    """The changes from one document to another.

    backward, forward: whether the right document reads data of the left one, and the left one data of the right one.
    is_complete: False where some changes are left out.
    """

    changes: Sequence[SchemaChange]
    backward: bool
    forward: bool
    is_complete: bool

    @property
    def levels(self) -> Mapping[str, bool]:
        """Whether each compatibility level allows the right document as the successor of the left one."""
        verdicts = {"backward": self.backward, "forward": self.forward, "full": self.backward and self.forward}
        return {level: verdicts[level.partition("_")[0]] for level in COMPATIBILITIES}

    def members(self) -> dict[str, Any]:
        """The changes as JSON."""
        return {
            "levels": dict(self.levels),
            "complete": self.is_complete,
            "changes": [change.members() for change in self.changes],
        }


def _location_members(location: DocumentLocation | None) -> dict[str, Any] | None:
    if location is None:
        return None
    members = {"pointer": location.pointer, "line": location.line}
    return {name: value for name, value in members.items() if value is not None}


def _verdict_members(reason: Incompatibility | None) -> dict[str, Any]:
    return {"ok": True} if reason is None else {"ok": False, "rule": reason.rule, "text": reason.text}
