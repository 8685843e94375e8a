"""Which parts of the log a caller may read."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from annals.domain.access.roles import Caller, can_read_everything
from annals.domain.errors.http_errors import Forbidden
from annals.domain.values import xid as xids
from annals.projections.entities.visibility import Visibility

#: Decides on a stream, or on the entity of an event.
VisibilityTest = Callable[[str], bool]


def check_reads_everything(caller: Caller) -> None:
    """Checks that the caller may read the whole registry. Raises: Forbidden for a caller without a role for it."""
    if not caller.sees_everything:
        raise Forbidden(caller=caller.name)


def check_reads_something(caller: Caller) -> None:
    """Checks that the caller may read a part of the registry. Raises: Forbidden for a caller without any role."""
    if not caller.sees_something:
        raise Forbidden(caller=caller.name)


def visible_streams(caller: Caller) -> VisibilityTest | None:
    """A test for the log streams that a caller may read; None for all streams.

    It is the same object for callers that see the same, so that their feeds share what they read.
    """
    if caller.is_admin:
        return None
    return is_public_stream if caller.sees_everything else _test_at_places(Visibility.of_caller(caller))


def is_public_stream(stream: str) -> bool:
    """Whether every reader of the log may read a stream. Streams of subscriptions and links are for admins only."""
    return not xids.is_outside_tree(stream)


def visible_subjects(caller: Caller) -> VisibilityTest:
    """A test for the entities whose change events a caller may read, in feeds and in what subscriptions get.

    It is `can_read_everything` for callers that may read all. A caller without any role reads none.
    """
    if caller.sees_everything:
        return can_read_everything
    return _test_at_places(Visibility.of_caller(caller)) if caller.sees_something else _is_never_visible


@lru_cache(maxsize=1024)
def _test_at_places(visibility: Visibility) -> VisibilityTest:
    return lambda xid: visibility.sees_stream(xids.stream(xid))


def _is_never_visible(xid: str) -> bool:
    return False
