"""Places in the document of a subscription or a link, and the errors at these places (SUB-508)."""

from __future__ import annotations

from dataclasses import dataclass

from annals.domain.errors.http_errors import InvalidMember, InvalidSubscription
from annals.domain.values.json_pointer import join_pointer


@dataclass(frozen=True, slots=True)
class ErrorPlace:
    """pointer: a JSON Pointer. problem: the type of the errors."""

    pointer: str = ""
    problem: type[InvalidMember] = InvalidSubscription

    def child(self, *steps: str | int) -> ErrorPlace:
        """A place within this one."""
        return ErrorPlace(join_pointer(self.pointer, *steps), self.problem)

    def error(self, code: str, reason: str) -> InvalidMember:
        """The problem at this place. code: for programs."""
        return self.problem.at_pointer(code, self.pointer, reason)


def invalid_subscription(code: str, pointer: str, reason: str) -> InvalidMember:
    """The problem of a member of a subscription. code: for programs."""
    return InvalidSubscription.at_pointer(code, pointer, reason)
