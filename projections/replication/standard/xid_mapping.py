"""Xids of Groups, and of what is in them, as they are here and as they are in the other registry."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from domain.values import xid as xids

_MARK: Final = re.compile(r"\.[0-9a-f]{8}\Z")


class XidMapping:
    """local, other: xids of Groups here and there, each by the lower-cased one that it stands for."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """names: those here by those there."""
        self.local = {other.lower(): local for other, local in names.items()}
        self.other = {local.lower(): other for other, local in names.items()}

    def here(self, xid: str) -> str:
        """What the other registry's xid is called here."""
        return _renamed(xid, self.local)

    def there(self, xid: str) -> str:
        """What an xid of this registry is called there."""
        return _renamed(xid, self.other)


def add_authority_mark(xid: str, authority: str) -> str:
    """The xid under which a Resource comes whose name is taken by one of another authority (LEG-907)."""
    return f"{xid}.{sha256(authority.encode()).hexdigest()[:8]}"


def remove_authority_mark(xid: str) -> str:
    """The xid that may have been marked; the same where it was not."""
    return _MARK.sub("", xid)


def _renamed(xid: str, names: Mapping[str, str]) -> str:
    parts = xids.segments(xid)
    group = xids.join(*parts[:2])
    return names.get(group.lower(), group) + "".join(f"/{part}" for part in parts[2:])
