"""The conflicts of a link: what it could not copy and why, for its status (LEG-907)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from annals.projections.replication.link_state import LinkStates
from annals.projections.replication.refusals import refusal_of

#: Largest number of conflicts that a status names; it also has their total.
MAX_CONFLICTS: Final = 100
#: The member of a conflict with its subject: the xid of an entity; or a path, for links over a legacy API.
XID: Final = "xid"
SUBJECT: Final = "subject"


class LinkConflicts:
    """The conflicts of one link: one reason for each subject, in the order in which they were added.

    After a restart only those are known that the stored status names. The others are counted, until `clear`: a new
    conflict may be one of them, so the total is exact again after the next full pass.
    """

    def __init__(self, link: str, states: LinkStates, subject_member: str) -> None:
        """subject_member: XID or SUBJECT. Raises: one of `driver_errors()`."""
        self._link = link
        self._states = states
        self._subject_member = subject_member
        status = states.read(link).status
        stored_conflicts = status.get("conflicts") or ()
        self._reasons: dict[str, str] = {
            each[subject_member]: each["reason"] for each in stored_conflicts if subject_member in each
        }
        self._unnamed_count = max(0, (status.get("conflictscount") or 0) - len(self._reasons))
        self.added_count = 0  # how often a conflict was added

    def __len__(self) -> int:
        """The total."""
        return len(self._reasons) + self._unnamed_count

    @property
    def needs_full_pass(self) -> bool:
        """Whether there are conflicts whose subjects are not known."""
        return self._unnamed_count > 0

    def add(self, subject: str, reason: str) -> None:
        """Records that something could not be copied, after all others, so that retries take turns."""
        self._reasons.pop(subject, None)
        self._reasons[subject] = reason
        self.added_count += 1

    def attempt(self, subject: str, action: Callable[[], object]) -> bool:
        """Whether an action succeeds; otherwise records the conflict. Raises: as `refusal_of`."""
        if (reason := refusal_of(action, subject)) is not None:
            self.add(subject, reason)
        return reason is None

    def resolve(self, subject: str) -> None:
        """Removes the conflict about a subject, but not those about what is below it."""
        self._reasons.pop(subject, None)

    def resolve_tree(self, subject: str) -> None:
        """Removes the conflicts about a subject and everything below it."""
        below = f"{subject}/"
        for known_subject in [each for each in self._reasons if each == subject or each.startswith(below)]:
            del self._reasons[known_subject]

    def clear(self) -> None:
        """Removes all conflicts, before a full pass."""
        self._reasons.clear()
        self._unnamed_count = 0

    def first_subjects(self) -> list[str]:
        """The subjects that a status names."""
        return list(self._reasons)[:MAX_CONFLICTS]

    def save(self, cursor: int | None = None, **facts: Any) -> None:
        """Writes the link's status after a pass without errors. facts: more of the status. Raises: as `__init__`."""
        named_conflicts = [
            {self._subject_member: subject, "reason": self._reasons[subject]} for subject in self.first_subjects()
        ]
        facts |= {"conflicts": named_conflicts or None, "conflictscount": len(self) or None}
        self._states.update(self._link, cursor, lastcontact=time.time(), error=None, failed=None, **facts)
