"""The objects that a link over a legacy API could not copy, for its status (LEG-907)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from annals.projections.replication.link_state import LinkStates
from annals.projections.replication.refusals import refusal_of

#: Largest number of conflicts in a status.
_MAX_CONFLICTS: Final = 100


class LegacyConflicts:
    """The conflicts of one link by subject: the path of an object in the other registry or in this one."""

    def __init__(self, link: str, states: LinkStates) -> None:
        self._link = link
        self._states = states
        self._conflicts: dict[str, str] = dict(_conflicts_by_subject(states.read(link).status))
        self._is_changed = False

    def add(self, subject: str, reason: str) -> None:
        """Records a conflict about an object."""
        self._is_changed |= self._conflicts.get(subject) != reason
        self._conflicts[subject] = reason

    def resolve(self, subject: str) -> None:
        """Removes the conflicts about an object and everything below it."""
        settled_subjects = [
            known_subject
            for known_subject in self._conflicts
            if known_subject == subject or known_subject.startswith(f"{subject}/")
        ]
        for known_subject in settled_subjects:
            del self._conflicts[known_subject]
        self._is_changed |= bool(settled_subjects)

    def attempt(self, subject: str, action: Callable[[], object]) -> bool:
        """Whether an action on an object succeeds; otherwise records the conflict. Raises: as `refusal_of`."""
        if (reason := refusal_of(action, subject)) is not None:
            self.add(subject, reason)
        return reason is None

    def clear(self) -> None:
        """Removes all conflicts before a full pass."""
        self._is_changed |= bool(self._conflicts)
        self._conflicts.clear()

    def save(self, cursor: int | None = None) -> None:
        """Writes the link's status. Raises: one of `driver_errors()`."""
        facts: dict[str, Any] = {"lastcontact": time.time(), "error": None, "failed": None}
        if self._is_changed:
            conflicts = [{"subject": subject, "reason": reason} for subject, reason in self._conflicts.items()]
            facts |= {"conflicts": conflicts[:_MAX_CONFLICTS] or None, "conflictscount": len(conflicts) or None}
        self._states.update(self._link, cursor, **facts)
        self._is_changed = False


def _conflicts_by_subject(facts: Any) -> Any:
    return {conflict["subject"]: conflict["reason"] for conflict in facts.get("conflicts") or ()}
