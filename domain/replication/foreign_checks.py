"""What interactions and events of other registries have to be like. Nothing else is ever appended to the log."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from annals.domain.registry.events import EntityDeleted, EntityEvent
from annals.domain.replication.foreign_interaction import ForeignInteraction
from annals.domain.values import xid as xids

#: The segments of an xid down to a Version, the fifth of which is always the same.
_DEPTHS: Final = (2, 4, 6)
_VERSIONS: Final = "versions"
#: The largest integer that a column of a database holds.
_MAX_INTEGER: Final = (1 << 63) - 1
#: The sizes of a state hash: none where its registry does not show it to everybody.
_HASH_SIZES: Final = (0, 32)


def check_interaction(interaction: ForeignInteraction) -> None:
    """Raises: ValueError for members or events that no registry records."""
    texts = {
        "xregcorrelationid": interaction.xregcorrelationid,
        "caller": interaction.caller,
        "command": interaction.command,
        "registryurl": interaction.registry_url,
        "authenticator": interaction.authenticator,
        "keyid": interaction.keyid,
    }
    for name, text in texts.items():
        if not isinstance(text, str):
            raise ValueError(f"the {name} of an interaction is no text")
    if not interaction.xregcorrelationid:
        raise ValueError("an interaction has no xregcorrelationid")
    _check_integer("position", interaction.last)
    if len(interaction.state) not in _HASH_SIZES:
        raise ValueError(f"the state hash of {interaction.xregcorrelationid} has not 32 bytes")
    for event in interaction.events:
        check_event(event)


def check_event(event: EntityEvent) -> None:
    """Raises: ValueError for an event that no registry records. What is outside of the tree is never appended."""
    if xids.is_outside_tree(event.stream):
        return
    if not _is_xid_of_type(event.xid, event.type):
        raise ValueError(f"the xid {event.xid[:200]!r} is not one of the type {event.type[:200]!r}")
    _check_integer(f"epoch of {event.xid}", event.epoch)
    members: dict[str, Any] = {"attributes": event.attributes, "private members": event.private}
    if event.xid == xids.MODEL and not isinstance(event, EntityDeleted) and isinstance(event.attributes, dict):
        members |= {name: event.attributes.get(name) for name in ("modelsource", "model")}
    for name, value in members.items():
        if not isinstance(value, dict):
            raise ValueError(f"the {name} of {event.xid} are no JSON object")


def _check_integer(name: str, value: object) -> None:
    if type(value) is not int or not 0 <= value <= _MAX_INTEGER:
        raise ValueError(f"the {name} is no integer from 0 to {_MAX_INTEGER}")


@lru_cache(maxsize=1 << 14)
def _is_xid_of_type(xid: str, type: str) -> bool:
    if type != xids.type_of(xid) or xid in xids.ROOT_STREAMS:
        return type == xid and xid in xids.ROOT_STREAMS
    parts = xids.segments(xid)
    return (
        xid.startswith("/")
        and len(parts) in _DEPTHS
        and parts[4:5] in ((), (_VERSIONS,))
        and all(map(xids.NAME.match, parts[::2]))
        and all(map(xids.ID.match, parts[1::2]))
    )
