"""The request parameters and the result of a preview."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from annals.api.subscriptions.actions import parse_replay_range
from annals.api.subscriptions.context import position_of_time
from annals.domain.subscriptions.error_places import ErrorPlace
from annals.domain.subscriptions.member_types import integer_type
from annals.domain.subscriptions.subscription_document import SubscriptionSupport, parse_preview
from annals.domain.values.json_text import Json
from annals.projections.log.reader import Log
from annals.projections.subscriptions.event_messages import EventMessage
from annals.projections.subscriptions.preview import ExpressionErrors, PreviewCounts

#: Default and maximum number of matching events that a preview shows in full.
DEFAULT_MATCHES: Final = 10
MAX_MATCHES: Final = 1000
_RANGE_MEMBERS: Final = frozenset(("fromposition", "fromtime", "toposition", "limit"))


class PreviewParams(NamedTuple):
    """The subscription to preview, its range of positions, and `limit`, the number of matching events to show."""

    attributes: Mapping[str, Json]
    first: int
    last: int
    limit: int


def parse_preview_params(body: Any, support: SubscriptionSupport, log: Log) -> PreviewParams:
    """The parameters in a body. The range begins at the first position by default. Raises: InvalidSubscription."""
    attributes, preview_members = parse_preview(body, support, _RANGE_MEMBERS)
    place, head = ErrorPlace(), log.head().last
    limit = integer_type(0, MAX_MATCHES).parse(preview_members.pop("limit", DEFAULT_MATCHES), place.child("limit"))
    if not {"fromposition", "fromtime"} & preview_members.keys():
        preview_members["fromposition"] = 1
    replay_range = parse_replay_range(preview_members, lambda time: position_of_time(log, time))
    first_position, last_position = replay_range["from"], replay_range.get("to", head)
    for name, position in (("toposition", last_position), ("fromposition", first_position)):
        if position > head and (head or position > 1):
            raise place.child(name).error("value", f"the log ends at position {head}")
    if last_position < first_position and head:
        raise place.child("toposition").error("value", "it is before the first position of the range")
    return PreviewParams(attributes, first_position, last_position, limit)


def preview_result(counts: PreviewCounts, errors: Sequence[ExpressionErrors]) -> dict[str, Any]:
    """The result of a preview as JSON."""
    return {
        "from": counts.first,
        "to": counts.last,
        "position": counts.position,
        "complete": counts.is_complete,
        "considered": counts.considered.total(),
        "matched": counts.matched.total(),
        "families": _family_counts(counts.considered, counts.matched),
        "matches": [_event_members(item) for item in counts.matches],
        "errors": [_error_members(item) for item in errors if item.count],
    }


def _family_counts(considered: Counter[tuple[str, str]], matched: Counter[tuple[str, str]]) -> dict[str, Any]:
    families: dict[str, Any] = {}
    for (family, type), count in sorted(considered.items()):
        entry = families.setdefault(family, {"considered": 0, "matched": 0, "types": {}})
        entry["considered"] += count
        entry["matched"] += matched[family, type]
        entry["types"][type] = {"considered": count, "matched": matched[family, type]}
    return families


def _event_members(event: EventMessage) -> dict[str, Any]:
    """The event as a sink would receive it in structured mode."""
    changed_members = event.message.changed
    return {**event.attributes, **({} if changed_members is None else {"data": {"changed": list(changed_members)}})}


def _error_members(errors: ExpressionErrors) -> dict[str, Any]:
    members = {"pointer": errors.pointer, "expression": errors.expression.text, "count": errors.count}
    return members | (
        {"first": dict(zip(("event", "error"), errors.first_error, strict=True))} if errors.first_error else {}
    )
