"""The conflicts of a link: what it could not copy and why, for its status."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from annals.projections.replication.refusals import refusal_of

#: Largest number of conflicts in a status.
MAX_CONFLICTS: Final = 100


class Conflicts:
    """The conflicts of a link: one reason for each xid."""

    def __init__(self, stored_conflicts: list[dict[str, str]] | None = None) -> None:
        """stored_conflicts: in the form that `to_json` returns."""
        self._reasons = {conflict["xid"]: conflict["reason"] for conflict in stored_conflicts or ()}
        self.added_count = 0  # how often a conflict was added

    def __bool__(self) -> bool:
        return bool(self._reasons)

    def add(self, xid: str, reason: str) -> None:
        """Records that an entity could not be copied."""
        self._reasons[xid] = reason
        self.added_count += 1

    def attempt(self, xid: str, action: Callable[[], object]) -> bool:
        """Whether an action on an entity succeeds; otherwise records the conflict. Raises: as `refusal_of`."""
        if (reason := refusal_of(action, xid)) is not None:
            self.add(xid, reason)
        return reason is None

    def resolve(self, xid: str) -> None:
        """Removes a conflict."""
        self._reasons.pop(xid, None)

    def first_xids(self) -> list[str]:
        """The first entities that could not be copied, as many as `to_json` has."""
        return list(self._reasons)[:MAX_CONFLICTS]

    def to_json(self) -> list[dict[str, Any]] | None:
        """The first conflicts as JSON, in the order in which they were added; None if there are none."""
        return [{"xid": xid, "reason": reason} for xid, reason in list(self._reasons.items())[:MAX_CONFLICTS]] or None
