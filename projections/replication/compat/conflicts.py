"""The objects that a link over a legacy API could not copy, for its status (LEG-907)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from domain.errors.problems import Problem
from projections.replication.link_state import LinkStates

#: Largest number of conflicts in a status.
_MOST: Final = 100


class LegacyConflicts:
    """The conflicts of one link by subject: the path of an object in the other registry or in this one."""

    def __init__(self, link: str, states: LinkStates) -> None:
        self._link = link
        self._states = states
        self._conflicts: dict[str, str] = dict(_known(states.read(link).status))
        self._is_changed = False

    def add(self, subject: str, reason: str) -> None:
        """Records a conflict about an object."""
        self._is_changed |= self._conflicts.get(subject) != reason
        self._conflicts[subject] = reason

    def resolve(self, subject: str) -> None:
        """Removes the conflicts about an object and everything below it."""
        gone = [each for each in self._conflicts if each == subject or each.startswith(f"{subject}/")]
        for each in gone:
            del self._conflicts[each]
        self._is_changed |= bool(gone)

    def attempt(self, subject: str, act: Callable[[], None]) -> bool:
        """Whether an action on an object succeeds. A Problem is recorded as a conflict."""
        try:
            act()
        except Problem as problem:
            self.add(subject, problem.text())
            return False
        return True

    def clear(self) -> None:
        """Removes all conflicts before a full pass."""
        self._is_changed |= bool(self._conflicts)
        self._conflicts.clear()

    def save(self, cursor: int | None = None) -> None:
        """Writes the link's status. Raises: one of `DRIVER_ERRORS`."""
        facts: dict[str, Any] = {"lastcontact": time.time(), "error": None, "failed": None}
        if self._is_changed:
            shown = [{"subject": subject, "reason": reason} for subject, reason in self._conflicts.items()]
            facts |= {"conflicts": shown[:_MOST] or None, "conflictscount": len(shown) or None}
        self._states.update(self._link, cursor, **facts)
        self._is_changed = False


def _known(facts: Any) -> Any:
    return {each["subject"]: each["reason"] for each in facts.get("conflicts") or ()}
