"""An interaction of another registry's log, before it is appended to this one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from annals.domain.registry.events import EntityEvent

#: The default limit of an interaction, in bytes of its lines in a feed. Its events take some four times as much memory.
MAX_INTERACTION_BYTES: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class ForeignInteraction:
    """One interaction as its registry recorded it.

    last: position of its last event there. state: the state hash there after it. events: in log order; their revisions
    and births are those of the other log. documents: bytes that events refer to, by SHA-256 in hex. authenticator,
    keyid: empty where the other log does not say.
    """

    last: int
    xregcorrelationid: str
    time: datetime
    caller: str
    command: str
    registry_url: str
    state: bytes
    events: tuple[EntityEvent, ...]
    documents: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    authenticator: str = ""
    keyid: str = ""
