"""What the log says of a subscription, and what its line does about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from projections.subscriptions.attempt import LETTERS, LIVE, REPLAY
from projections.subscriptions.lane import Entry, Lane
from projections.subscriptions.plan import Plan
from projections.subscriptions.sequence import parsed

if TYPE_CHECKING:
    from projections.subscriptions.line import Line


def updated(line: Line) -> None:
    """The owner has written the subscription: what stopped it may be mended."""
    facts, subscription = line.facts, line.subscription
    line.plan = Plan.of(subscription, line.hub.families)
    if facts.since != subscription.since:
        facts.since = subscription.since
        line.lanes[LIVE] = Lane(subscription.starts - 1)
    if facts.sink != line.plan.sink:
        facts.sink, facts.consent, facts.rate, facts.checked, facts.refusals = line.plan.sink, "", 0, 0.0, 0
        facts.bucket, facts.hold = None, 0.0
    facts.epoch = subscription.epoch
    facts.expires, facts.stored = 0.0, False
    _go_on(line)
    for lane in line.lanes.values():
        lane.rewind()
    line.access.forget()
    line.hub.hungry(line)


def asked(line: Line, action: Mapping[str, Any]) -> None:
    """The owner has asked for something. A pause is part of the subscription itself."""
    match action["name"]:
        case "resume":
            _go_on(line)
        case "verify":
            line.consents.ask()
        case "replay":
            _replay(line, action)
        case "redeliver":
            _redeliver(line, parsed(str(action["sequence"])))
        case "discard":
            _discard(line, parsed(str(action["sequence"])))


def _go_on(line: Line) -> None:
    facts = line.facts
    if facts.state in ("gone", "suspended"):
        facts.hold = 0.0
    facts.state, facts.dead, facts.failing = "", 0, 0.0


def _replay(line: Line, action: Mapping[str, Any]) -> None:
    first = int(action["from"])
    last = action.get("to")
    end = line.position if last is None else int(last)
    line.lanes[REPLAY] = Lane(first - 1, end=end)
    line.facts.replay = {"from": first, "to": end, "parallel": bool(action.get("parallel"))}
    line.hub.hungry(line)


def _redeliver(line: Line, sequence: int | None) -> None:
    """Gives a dead letter a fresh set of attempts, with no regard to the order of others."""
    if sequence is not None and sequence not in line.lanes[LETTERS]:
        line.lanes[LETTERS].add(Entry(sequence, f"#{sequence}"))


def _discard(line: Line, sequence: int | None) -> None:
    """Forgets a dead letter; an attempt that runs may end."""
    if sequence is not None:
        line.lanes[LETTERS].discard(sequence)
        line.kept.letters.append(sequence)
