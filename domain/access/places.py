"""Places where a role holds: the xid of a Group, or a pattern of such xids.

A pattern has `*` for any run of characters within the name of a collection or the id of a Group, in any letter case:
`/*/team-a`, `/schemagroups/pay-*`. Rule ACC-60.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from annals.domain.values import xid as xids

WILDCARD: Final = "*"
#: The maximum number of places of a caller, and of wildcards in a place.
MAX_PLACES: Final = 100
MAX_WILDCARDS: Final = 8
#: The characters of names and ids, in any letter case, and wildcards: keys of entities have further ones between these.
_PLACE: Final = re.compile(r"/[A-Za-z0-9_*]+/[A-Za-z0-9._~:@*\-]+")


def check_place(text: object) -> str:
    """A place in lower case. Raises: ValueError if it is neither the xid of a Group nor a pattern of one."""
    if not isinstance(text, str) or _PLACE.fullmatch(text) is None:
        raise ValueError(f'"{text}" is no place: it has to be the xid of a Group or a pattern such as "/dirs/team-*"')
    if text.count(WILDCARD) > MAX_WILDCARDS:
        raise ValueError(f'"{text}" has more than {MAX_WILDCARDS} wildcards')
    return xids.stream(text)


def check_places(places: Iterable[object]) -> list[str]:
    """Several places, as `check_place`. Raises: ValueError also for too many."""
    checked_places = [check_place(place) for place in places]
    if len(checked_places) > MAX_PLACES:
        raise ValueError(f"there are more than {MAX_PLACES} places")
    return checked_places


def is_pattern(place: str) -> bool:
    """Whether a place can be more than one Group."""
    return WILDCARD in place


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern is true of a text, such as a place of the xid of a Group; both in lower case."""
    return _expression(pattern).fullmatch(text) is not None


@lru_cache(maxsize=4096)
def _expression(pattern: str) -> re.Pattern[str]:
    beginning, *others = map(re.escape, pattern.split(WILDCARD))
    # The first place of each piece is as good as any other, so no other one is tried; the last piece is at the end.
    middle = "".join(f"(?>[^/]*?{piece})" for piece in others[:-1])
    return re.compile(beginning + middle + "".join(f"[^/]*{piece}" for piece in others[-1:]))
