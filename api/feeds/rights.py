"""Which parts of the log a caller may read."""

from __future__ import annotations

from collections.abc import Callable

from annals.domain.access.roles import Caller, Role
from annals.domain.errors.http_errors import Forbidden
from annals.domain.values import xid as xids

#: Decides on a stream, or on the subject of an event.
VisibilityTest = Callable[[str], bool]


def check_reads_everything(caller: Caller) -> None:
    """Checks that the caller may read the whole registry. Raises: Forbidden for a caller without a role for it."""
    if caller.role is None:
        raise Forbidden(caller=caller.name)


def visible_streams(caller: Caller) -> VisibilityTest | None:
    """A test for the log streams that a caller may read; None for all streams."""
    return None if caller.role is Role.ADMIN else is_public_stream


def is_public_stream(stream: str) -> bool:
    """Whether every reader of the log may read a stream. Streams of subscriptions and links are for admins only."""
    return not xids.is_outside_tree(stream)


def visible_subjects(caller: Caller) -> VisibilityTest | None:
    """A test for the event subjects that a caller may read; None for all. A caller with Groups reads those and below.

    Raises: Forbidden for a caller without any role.
    """
    if caller.role is not None:
        return None
    if not caller.groups:
        raise Forbidden(caller=caller.name)
    return caller.can_read
