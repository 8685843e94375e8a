"""`deprecated.removal`: an entity that announces its removal stays until that time (ENT-66)."""

from __future__ import annotations

from datetime import datetime

from annals.domain.errors.problems import BadRequest
from annals.domain.registry.entities import Attributes, Entity
from annals.domain.values import timestamps


def check_removable(entity: Entity, now: datetime) -> None:
    """Checks that the entity may be deleted now. Raises: BadRequest before the time in `deprecated.removal`."""
    if entity.type.count(".") == 2:
        return  # a Version has no such attribute; an extension may have its name
    attributes: Attributes = entity.attributes["meta"] if "." in entity.type else entity.attributes
    removal = (attributes.get("deprecated") or {}).get("removal")
    if removal and timestamps.instant_key(removal) > timestamps.instant_key(timestamps.to_text(now)):
        raise BadRequest(
            error_detail=f'"{entity.xid}" announces its removal for {removal} in "deprecated.removal" and cannot be '
            f'deleted before; change or clear "deprecated" first'
        )
