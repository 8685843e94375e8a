"""One reference between two entities."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class ReferenceState(StrEnum):
    """What a reference leads to: an entity, nothing that the reader sees, or something outside this registry."""

    RESOLVED = "resolved"
    DANGLING = "dangling"
    EXTERNAL = "external"


class Reference(NamedTuple):
    """A reference, with the names of its parts as responses have them.

    source: the xid of the entity that has it; a Resource stands for its default Version. target: the xid of the entity
    that it leads to; the value itself if it leads to none. attribute: the path of the value in dot notation.
    """

    source: str
    target: str
    attribute: str
    state: ReferenceState
