"""What a link could not copy, and why, for its status."""

from __future__ import annotations

from typing import Any, Final

#: Conflicts that a status names at most.
MAX_CONFLICTS: Final = 100


class Conflicts:
    """One reason for each xid."""

    def __init__(self, known: list[dict[str, str]] | None = None) -> None:
        """known: as `told` gave them."""
        self._reasons = {each["xid"]: each["reason"] for each in known or ()}
        self.met = 0  # how often something was added

    def __bool__(self) -> bool:
        return bool(self._reasons)

    def add(self, xid: str, reason: str) -> None:
        """It is not as it is in the other registry."""
        self._reasons[xid] = reason
        self.met += 1

    def settled(self, xid: str) -> None:
        """It is now."""
        self._reasons.pop(xid, None)

    def told(self) -> list[dict[str, Any]] | None:
        """The first ones in the order in which they were met; None where there are none."""
        return [{"xid": xid, "reason": reason} for xid, reason in list(self._reasons.items())[:MAX_CONFLICTS]] or None
