"""Changes and the sides of a comparison as JSON members and CSV rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from annals.api.audit.formats import JsonMembers, ListWrapper, TableLayout
from annals.api.audit.representations import moment_members
from annals.api.xregistry.compare.sides import ComparedSide
from annals.domain.access.roles import Caller

_DIRECTIONS: Final = ("backward", "forward")
_COLUMNS: Final = (
    *("change", "path", "left", "right", "before", "after"),
    *(f"{direction}{part}" for direction in _DIRECTIONS for part in ("", "rule", "text")),
)


def _change_rows(change: Mapping[str, Any]) -> Iterator[JsonMembers]:
    """One row: a side is its pointer or line, a verdict `ok` or `breaking`, with its rule and its text."""
    row = {name: change[name] for name in ("change", "path", "before", "after")}
    for side in ("left", "right"):
        row[side] = next(iter((change[side] or {}).values()), None)
    for direction in _DIRECTIONS:
        verdict = change[direction]
        row[direction] = "ok" if verdict["ok"] else "breaking"
        row |= {f"{direction}{part}": verdict.get(part) for part in ("rule", "text")}
    yield row


#: The layout of changes, which come as members.
CHANGE_TABLE: Final[TableLayout[dict[str, Any]]] = TableLayout(_COLUMNS, lambda change: change, _change_rows)


def comparison_wrapper(
    xid: str, left: ComparedSide, right: ComparedSide, changes: Mapping[str, Any], caller: Caller
) -> ListWrapper:
    """What the JSON form has besides the list of changes."""
    members = {
        "xid": xid,
        "left": _side_members(left, caller),
        "right": _side_members(right, caller),
        "levels": {level: {"ok": is_allowed} for level, is_allowed in changes["levels"].items()},
        "complete": changes["complete"],
    }
    return ListWrapper(members, "changes")


def _side_members(side: ComparedSide, caller: Caller) -> JsonMembers:
    """A side; a draft has neither Version nor moment."""
    document = {"format": side.document.format, "sha256": side.document.sha256}
    if side.versionid is None:
        return document
    return {"versionid": side.versionid, **moment_members(side.moment, caller), **document}
