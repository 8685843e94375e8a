"""Filters of subscriptions compared with predicates written by hand, and one event against thousands of subscriptions.

SUB-646 asks for the figures of expressions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from annals.domain.cesql import ContextAttributes, compile_expression
from annals.domain.subscriptions import filters
from annals.domain.subscriptions.subscription_index import SubscriptionIndex, SubscriptionInterest
from bench.figures import Figure, Want
from bench.places import Place

#: The fastest of so many readings counts.
TURNS: Final = 5
#: Evaluations a second of an expression with two clauses (SUB-646).
WANTED: Final = 100_000

TYPE: Final = "io.xregistry.version.created"
EVENT: Final[ContextAttributes] = {
    "specversion": "1.0",
    "id": "0193e2b8.0.xregistry.version.created",
    "source": "https://registry.example.com",
    "type": TYPE,
    "subject": "/schemagroups/group42/schemas/report/versions/7",
    "time": "2026-01-02T03:04:05.000000Z",
    "xregcorrelationid": "0193e2b8",
    "sequence": "00000000000000004711.00",
}

#: What each dialect is asked, and the same by hand.
DIALECTS: Final[dict[str, tuple[Any, Callable[[ContextAttributes], bool]]]] = {
    "exact": ({"exact": {"type": TYPE}}, lambda event: event.get("type") == TYPE),
    "prefix": (
        {"prefix": {"subject": "/schemagroups/group42/"}},
        lambda event: str(event.get("subject", "")).startswith("/schemagroups/group42/"),
    ),
    "suffix": ({"suffix": {"type": ".created"}}, lambda event: str(event.get("type", "")).endswith(".created")),
    "all": (
        {"all": [{"exact": {"type": TYPE}}, {"prefix": {"subject": "/schemagroups/"}}]},
        lambda event: event.get("type") == TYPE and str(event.get("subject", "")).startswith("/schemagroups/"),
    ),
    "any": (
        {"any": [{"exact": {"type": "other"}}, {"prefix": {"subject": "/schemagroups/"}}]},
        lambda event: event.get("type") == "other" or str(event.get("subject", "")).startswith("/schemagroups/"),
    ),
    "not": ({"not": {"exact": {"type": "other"}}}, lambda event: event.get("type") != "other"),
    "sql": ({"sql": f"type = '{TYPE}'"}, lambda event: event.get("type") == TYPE),
}
#: Expressions, and the same by hand.
EXPRESSIONS: Final[dict[str, Callable[[ContextAttributes], bool]]] = {
    f"type = '{TYPE}' AND subject LIKE '/schemagroups/%'": lambda event: (
        event.get("type") == TYPE and str(event.get("subject", "")).startswith("/schemagroups/")
    ),
    "type IN ('a', 'b', 'io.xregistry.version.created') AND NOT EXISTS deprecated": lambda event: (
        event.get("type") in ("a", "b", TYPE) and "deprecated" not in event
    ),
    "INT(LEFT(sequence, 20)) > 1000 AND LENGTH(subject) < 64": lambda event: (
        int(str(event["sequence"])[:20]) > 1000 and len(str(event["subject"])) < 64
    ),
}


def measure(place: Place, quick: bool) -> Iterator[Figure]:
    """Evaluations a second, and times of one event; no store has a part in them, so they are measured once."""
    if place.name != "SQLite":
        return
    times = 2_000 if quick else 50_000
    for name, (given, by_hand) in DIALECTS.items():
        yield _compared(f"Filter `{name}`", filters.compile_filters([given]).matches, by_hand, times)
    for text, by_hand in EXPRESSIONS.items():
        yield _enough(text, compile_expression(text).matches, by_hand, times)
    yield _matching(1_000 if quick else 10_000)


def _compared(
    what: str, matches: Callable[[ContextAttributes], bool], by_hand: Callable[[ContextAttributes], bool], times: int
) -> Figure:
    seconds, floor = _each(matches, by_hand, times)
    measured, least = f"{1e6 * seconds:.2f} µs", f"{1e6 * floor:.2f} µs by hand"
    return Figure(what, "none", f"{times:,} events", measured, least, seconds / floor, Want.AT_MOST, 8, " x")


def _enough(
    text: str, matches: Callable[[ContextAttributes], bool], by_hand: Callable[[ContextAttributes], bool], times: int
) -> Figure:
    seconds, floor = _each(matches, by_hand, times)
    measured = f"{1e6 * seconds:.2f} µs, {seconds / floor:.1f} x"
    what = f"CESQL, `{text}`".replace("|", "\\|")
    floors = f"{1e6 * floor:.2f} µs by hand"
    return Figure(what, "none", f"{times:,} events", measured, floors, 1 / seconds, Want.AT_LEAST, WANTED, "/s")


def _each(
    one: Callable[[ContextAttributes], bool], other: Callable[[ContextAttributes], bool], times: int
) -> tuple[float, float]:
    """Seconds for one event each, measured in turns, because the machine's own pace changes within seconds."""
    assert one(EVENT) == other(EVENT)
    turns = [(_seconds(one, times), _seconds(other, times)) for _ in range(TURNS)]
    return min(first for first, _ in turns) / times, min(second for _, second in turns) / times


def _seconds(matches: Callable[[ContextAttributes], bool], times: int) -> float:
    began = time.perf_counter()
    for _ in range(times):
        matches(EVENT)
    return time.perf_counter() - began


def _matching(count: int) -> Figure:
    """Finding those of many subscriptions that want one event, compared with trying each of them."""
    interests = [
        SubscriptionInterest(filters.compile_filters([_wanted(number)]), types=(TYPE,)) for number in range(count)
    ]
    index = SubscriptionIndex[int]()
    for number, interest in enumerate(interests):
        index.put(number, interest)
    found = index.matches(EVENT)
    assert found and sorted(found) == [key for key, interest in enumerate(interests) if interest.matches(EVENT)]
    turns = []
    for _ in range(TURNS):
        seconds = _seconds(lambda event: bool(index.matches(event)), 100) / 100
        began = time.perf_counter()
        for interest in interests:
            interest.matches(EVENT)
        turns.append((seconds, time.perf_counter() - began))
    seconds, floor = min(first for first, _ in turns), min(second for _, second in turns)
    measured, least = f"{1e6 * seconds:.0f} µs, {len(found)} match", f"{1e6 * floor:,.0f} µs trying each"
    size = f"{count:,} subscriptions"
    return Figure(
        "One event, all its subscriptions", "none", size, measured, least, seconds / floor, Want.AT_MOST, 0.1, " x"
    )


def _wanted(number: int) -> Any:
    """Filters as people write them: mostly about a Group, in four ways, and one in a hundred about what ends a type."""
    group = f"/schemagroups/group{number % 1000}/"
    if number % 100 == 0:
        return {"suffix": {"type": ".created"}}
    return (
        {"prefix": {"subject": group}},
        {"sql": f"subject LIKE '{group}%' AND type LIKE '%.created'"},
        {"all": [{"suffix": {"type": ".created"}}, {"prefix": {"subject": group}}]},
        {"any": [{"prefix": {"subject": group}}, {"exact": {"subject": group.rstrip("/")}}]},
    )[number % 4]
