"""Who may see what through the older APIs: the rights of the xRegistry API, told in their words (LEG-1101 to 1104).

Who may list or create Groups learns the ids of all of them, also of those that it may not look into; for anybody else,
a Group that it may not read is not there.
"""

from __future__ import annotations

from typing import Final

from api.compat.paths import CompatPathKind, CompatTarget
from domain.access.roles import Caller, Role
from domain.compat.legacy_apis import LegacyApi
from domain.errors import problems
from domain.errors.http_errors import Forbidden

_WRITERS: Final = frozenset((Role.WRITER, Role.ADMIN))
#: Paths that are no Group's.
_ABOVE: Final = frozenset((CompatPathKind.GROUPS, CompatPathKind.LOOKUP, CompatPathKind.DESCRIPTION))


def may_list(caller: Caller, family: LegacyApi) -> bool:
    """Whether a caller learns of all Groups: with a role for the registry, or where it may create one of them."""
    creates = (role in _WRITERS and xid.startswith(f"/{family.groups}/") for xid, role in caller.groups.items())
    return caller.role is not None or any(creates)


def check_read(caller: Caller, target: CompatTarget, path: str) -> bool:
    """Whether the caller sees all that is at a path; False where it may know of the Group that it is, and no more.

    Raises: Forbidden, and NotFound where not even this may be known.
    """
    if target.kind in _ABOVE:
        if target.kind is CompatPathKind.GROUPS and not may_list(caller, target.family):
            raise Forbidden(caller=caller.name)
        return True
    if caller.reads(target.groupxid):
        return True
    if not may_list(caller, target.family):
        raise problems.NotFound(path)
    if target.kind is not CompatPathKind.GROUP:
        raise Forbidden(caller=caller.name)
    return False


def check_write(caller: Caller, target: CompatTarget) -> None:
    """Raises: Forbidden, whatever is there: a refusal tells nothing of Groups that the caller may not see."""
    if caller.role_at(target.groupxid) not in _WRITERS:
        raise Forbidden(caller=caller.name)
