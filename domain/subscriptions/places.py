"""Places in the document of a subscription, and what is said where one breaks a rule (SUB-508)."""

from __future__ import annotations

from dataclasses import dataclass

from domain.refusals import InvalidSubscription


@dataclass(frozen=True, slots=True)
class Place:
    """pointer: a JSON Pointer."""

    pointer: str = ""

    def at(self, *steps: str | int) -> Place:
        """A place within this one."""
        escaped = (str(step).replace("~", "~0").replace("/", "~1") for step in steps)
        return Place("/".join((self.pointer, *escaped)))

    def refused(self, code: str, reason: str) -> InvalidSubscription:
        """The problem of what stands here. code: for programs."""
        return refused(code, self.pointer, reason)


def refused(code: str, pointer: str, reason: str) -> InvalidSubscription:
    """The problem of a member. code: for programs."""
    extensions: dict[str, object] = {"code": code, "pointer": pointer}
    return InvalidSubscription(pointer=pointer, error_detail=reason, extensions=extensions)
