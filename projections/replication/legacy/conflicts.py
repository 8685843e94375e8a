"""What a link over an older API could not bring over, for people to see in its status (LEG-907)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from domain.errors.problems import Problem
from projections.replication.link_state import LinkStates

#: Findings that a status shows at most.
_MOST: Final = 100


class LegacyConflicts:
    """Findings of one link by what they are about, the path of an object there or here."""

    def __init__(self, link: str, states: LinkStates) -> None:
        self._link = link
        self._states = states
        self._found: dict[str, str] = dict(_known(states.read(link).facts))
        self._changed = False

    def note(self, subject: str, reason: str) -> None:
        """Something stands against an object."""
        self._changed |= self._found.get(subject) != reason
        self._found[subject] = reason

    def settle(self, subject: str) -> None:
        """Nothing stands against an object, nor against what is below it."""
        gone = [each for each in self._found if each == subject or each.startswith(f"{subject}/")]
        for each in gone:
            del self._found[each]
        self._changed |= bool(gone)

    def attempt(self, subject: str, act: Callable[[], None]) -> bool:
        """Whether an act on an object is done; what refuses it stands against the object."""
        try:
            act()
        except Problem as problem:
            self.note(subject, problem.text())
            return False
        return True

    def restart(self) -> None:
        """Everything is looked at anew."""
        self._changed |= bool(self._found)
        self._found.clear()

    def tell(self, cursor: int | None = None) -> None:
        """Writes down how it goes. Raises: one of `store.FAILURES`."""
        facts: dict[str, Any] = {"lastcontact": time.time(), "error": None, "failed": None}
        if self._changed:
            shown = [{"subject": subject, "reason": reason} for subject, reason in self._found.items()]
            facts |= {"conflicts": shown[:_MOST] or None, "conflictscount": len(shown) or None}
        self._states.note(self._link, cursor, **facts)
        self._changed = False


def _known(facts: Any) -> Any:
    return {each["subject"]: each["reason"] for each in facts.get("conflicts") or ()}
