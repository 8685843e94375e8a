"""Access checks of the legacy APIs: they apply the rights of the xRegistry API to legacy paths (LEG-1101 to LEG-1104).

A caller with roles at some places sees the Groups there (ACC-76); for it, as in the xRegistry API, others do not exist.
"""

from __future__ import annotations

from annals.api.compat.paths import CompatPathKind, CompatTarget
from annals.domain.access.roles import Caller
from annals.domain.errors import problems
from annals.domain.errors.http_errors import Forbidden


def check_read(caller: Caller, target: CompatTarget, path: str) -> None:
    """Checks that the caller may read at a path. Raises: Forbidden for a list, and NotFound for a Group, if it may not.

    A lookup by URI is checked when its Version is found.
    """
    if target.group:
        if not caller.can_read(target.groupxid):
            raise problems.NotFound(path)
    elif target.kind is CompatPathKind.GROUPS and not caller.sees_something:
        raise Forbidden(caller=caller.name)


def check_write(caller: Caller, target: CompatTarget) -> None:
    """Checks that the caller may write at a path.

    Raises: Forbidden, whether or not the Group exists, so that a refusal does not reveal Groups that the caller may not
    see.
    """
    if not caller.can_write(target.groupxid):
        raise Forbidden(caller=caller.name)
