"""Who may read what of the log."""

from __future__ import annotations

from collections.abc import Callable

from domain.access.roles import Caller, Role
from domain.errors.http_errors import Forbidden
from domain.values import xid as xids

#: Decides on a stream, or on the subject of an event.
VisibilityTest = Callable[[str], bool]


def check_reads_everything(caller: Caller) -> None:
    """Raises: Forbidden for a caller without a role for the whole registry."""
    if caller.role is None:
        raise Forbidden(caller=caller.name)


def visible_streams(caller: Caller) -> VisibilityTest | None:
    """What a caller sees of the log's streams; None for all of them."""
    return None if caller.role is Role.ADMIN else is_public_stream


def is_public_stream(stream: str) -> bool:
    """Whether everybody who reads the log sees a stream; those of subscriptions and links are for admins only."""
    return not xids.is_outside_tree(stream)


def visible_subjects(caller: Caller) -> VisibilityTest | None:
    """What a caller sees of the subjects of events; None for all of them: callers with Groups see those and below.

    Raises: Forbidden for a caller without any role.
    """
    if caller.role is not None:
        return None
    if not caller.groups:
        raise Forbidden(caller=caller.name)
    return caller.reads
