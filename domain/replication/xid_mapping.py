"""Maps xids of Groups and their contents between this registry and the other one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from annals.domain.values import xid as xids

_AUTHORITY_MARK: Final = re.compile(r"\.[0-9a-f]{8}\Z")


class XidMapping:
    """The mapping of Group xids between two registries. The keys of both mappings are lower-cased.

    local_xids: local xids by remote ones.
    remote_xids: remote xids by local ones.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        """names: local xids by remote ones."""
        self.local_xids = {remote.lower(): local for remote, local in names.items()}
        self.remote_xids = {local.lower(): remote for remote, local in names.items()}

    def to_local(self, xid: str) -> str:
        """The local xid of a remote entity."""
        return _rename_group(xid, self.local_xids)

    def to_remote(self, xid: str) -> str:
        """The remote xid of a local entity."""
        return _rename_group(xid, self.remote_xids)


def add_authority_mark(xid: str, authority: str) -> str:
    """The xid for a Resource whose own is taken by one of another authority (LEG-907)."""
    return f"{xid}.{sha256(authority.encode()).hexdigest()[:8]}"


def remove_authority_mark(xid: str) -> str:
    """An xid without its authority mark, if it has one."""
    return _AUTHORITY_MARK.sub("", xid)


def _rename_group(xid: str, names: Mapping[str, str]) -> str:
    parts = xids.segments(xid)
    group = xids.join(*parts[:2])
    return names.get(group.lower(), group) + "".join(f"/{part}" for part in parts[2:])
