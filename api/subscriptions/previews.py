"""The request parameters and the result of a preview."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from api.subscriptions.actions import parse_replay_range
from api.subscriptions.context import position_of_time
from domain.subscriptions.error_places import ErrorPlace
from domain.subscriptions.member_types import integer_type
from domain.subscriptions.subscription_document import SubscriptionSupport, parse_preview
from domain.values.json_text import Json
from projections.log.reader import Log
from projections.subscriptions.event_messages import EventMessage
from projections.subscriptions.preview import ExpressionErrors, PreviewCounts

#: Default and maximum number of matching events that a preview shows in full.
DEFAULT_MATCHES: Final = 10
MAX_MATCHES: Final = 1000
_BESIDE: Final = frozenset(("fromposition", "fromtime", "toposition", "limit"))


class PreviewParams(NamedTuple):
    """The subscription to preview, its range of positions, and `limit`, the number of matching events to show."""

    attributes: Mapping[str, Json]
    first: int
    last: int
    limit: int


def parse_preview_params(body: Any, offer: SubscriptionSupport, log: Log) -> PreviewParams:
    """The parameters in a body. The range begins at the first position by default. Raises: InvalidSubscription."""
    attributes, beside = parse_preview(body, offer, _BESIDE)
    place, head = ErrorPlace(), log.head().last
    limit = integer_type(0, MAX_MATCHES).parse(beside.pop("limit", DEFAULT_MATCHES), place.at("limit"))
    if not {"fromposition", "fromtime"} & beside.keys():
        beside["fromposition"] = 1
    span = parse_replay_range(beside, lambda time: position_of_time(log, time))
    first, last = span["from"], span.get("to", head)
    for name, position in (("toposition", last), ("fromposition", first)):
        if position > head and (head or position > 1):
            raise place.at(name).error("value", f"the log ends at position {head}")
    if last < first and head:
        raise place.at("toposition").error("value", "it is before the first position of the range")
    return PreviewParams(attributes, first, last, limit)


def preview_result(tally: PreviewCounts, errors: Sequence[ExpressionErrors]) -> dict[str, Any]:
    """The result of a preview as JSON."""
    return {
        "from": tally.first,
        "to": tally.last,
        "position": tally.position,
        "complete": tally.is_complete,
        "considered": tally.considered.total(),
        "matched": tally.matched.total(),
        "families": _families(tally.considered, tally.matched),
        "matches": [_event(each) for each in tally.matches],
        "errors": [_error(each) for each in errors if each.count],
    }


def _families(considered: Counter[tuple[str, str]], matched: Counter[tuple[str, str]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for (family, type), count in sorted(considered.items()):
        entry = found.setdefault(family, {"considered": 0, "matched": 0, "types": {}})
        entry["considered"] += count
        entry["matched"] += matched[family, type]
        entry["types"][type] = {"considered": count, "matched": matched[family, type]}
    return found


def _event(told: EventMessage) -> dict[str, Any]:
    """The event as a sink would receive it in structured mode."""
    changed = told.message.changed
    return {**told.attributes, **({} if changed is None else {"data": {"changed": list(changed)}})}


def _error(errors: ExpressionErrors) -> dict[str, Any]:
    found = {"pointer": errors.pointer, "expression": errors.expression.text, "count": errors.count}
    return found | ({"first": dict(zip(("event", "error"), errors.first, strict=True))} if errors.first else {})
