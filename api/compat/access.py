"""Access checks of the legacy APIs: they apply the rights of the xRegistry API to legacy paths (LEG-1101 to LEG-1104).

A caller that may list or create Groups learns the ids of all Groups, including those that it may not read. For any
other caller, a Group that it may not read does not exist.
"""

from __future__ import annotations

from typing import Final

from annals.api.compat.paths import CompatPathKind, CompatTarget
from annals.domain.access.roles import Caller, Role
from annals.domain.compat.legacy_apis import LegacyApi
from annals.domain.errors import problems
from annals.domain.errors.http_errors import Forbidden

_WRITER_ROLES: Final = frozenset((Role.WRITER, Role.ADMIN))


def may_list(caller: Caller, family: LegacyApi) -> bool:
    """Whether a caller may list all Groups: it has a role for the registry, or it may create at least one Group."""
    creatable_groups = (
        role in _WRITER_ROLES and xid.startswith(f"/{family.groups}/") for xid, role in caller.groups.items()
    )
    return caller.role is not None or any(creatable_groups)


def check_read(caller: Caller, target: CompatTarget, path: str) -> bool:
    """True if the caller may read everything at a path; False if it may learn only that the Group exists.

    Raises: Forbidden; NotFound where the caller may not even learn that the Group exists.
    """
    if not target.group:
        if target.kind is CompatPathKind.GROUPS and not may_list(caller, target.family):
            raise Forbidden(caller=caller.name)
        return True
    if caller.can_read(target.groupxid):
        return True
    if not may_list(caller, target.family):
        raise problems.NotFound(path)
    if target.kind is not CompatPathKind.GROUP:
        raise Forbidden(caller=caller.name)
    return False


def check_write(caller: Caller, target: CompatTarget) -> None:
    """Checks that the caller may write at a path.

    Raises: Forbidden, whether or not the Group exists, so that a refusal does not reveal Groups that the caller may not
    see.
    """
    if caller.role_at(target.groupxid) not in _WRITER_ROLES:
        raise Forbidden(caller=caller.name)
