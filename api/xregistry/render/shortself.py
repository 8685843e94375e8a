"""The short URL of an entity.

Spec: core 1.0-rc4, "shortself Attribute".
"""

from __future__ import annotations

from typing import Final

from annals.api.http.base36 import base36
from annals.domain.values import xid as xids
from annals.projections.entities.rows import EntityRow

#: Name of the surface below `/-/`, and the index of the token among the segments of a path.
SHORTSELF_PATH: Final = "s"
TOKEN_SEGMENT: Final = 2


def shortself_url(base_url: str, row: EntityRow, subpath: str = "") -> str:
    """The absolute short URL of an entity, or of its part at `subpath`. It never changes while the entity exists."""
    if row.born is None:
        return f"{base_url}/-/{SHORTSELF_PATH}/0{row.xid if row.xid != xids.REGISTRY else ''}{subpath}"
    return f"{base_url}/-/{SHORTSELF_PATH}/{base36(row.born)}{subpath}"
