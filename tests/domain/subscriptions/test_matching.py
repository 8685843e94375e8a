"""The index of subscriptions finds the same matches as trying each subscription."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals.domain.cesql import ContextAttributes
from annals.domain.subscriptions.filters import Filter, compile_filters
from annals.domain.subscriptions.subscription_index import SubscriptionIndex, SubscriptionInterest

NAMES = st.sampled_from(["type", "subject", "source", "myext"])
TEXTS = st.sampled_from(["a", "ab", "abc", "b", "true", "TRUE", "1", "01", "/x/y", "/x"])
EVENTS = st.dictionaries(NAMES, TEXTS | st.booleans() | st.sampled_from([0, 1, 5]) | st.none())
QUOTED = TEXTS.map("'{}'".format)
ATOMS = st.one_of(
    st.builds("{} {} {}".format, NAMES, st.sampled_from(["=", "!="]), QUOTED | st.sampled_from(["1", "TRUE"])),
    st.builds("{} = {}".format, QUOTED, NAMES),
    st.builds("{} {}LIKE '{}{}'".format, NAMES, st.sampled_from(["", "NOT "]), TEXTS, st.sampled_from(["%", "_", ""])),
    st.builds(
        "{} {}IN ({}, {})".format, NAMES, st.sampled_from(["", "NOT "]), QUOTED, QUOTED | st.sampled_from(["1", "TRUE"])
    ),
    st.builds("EXISTS {}".format, NAMES),
    NAMES,
)
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["AND", "OR", "XOR"]), inner),
        st.builds("{} AND {} OR {}".format, inner, inner, inner),
        st.builds("NOT ({})".format, inner),
    ),
    max_leaves=5,
)
COMPARISONS = st.builds(
    lambda dialect, pairs: {dialect: pairs},
    st.sampled_from(["exact", "prefix", "suffix"]),
    st.dictionaries(NAMES, TEXTS, min_size=1, max_size=2),
)
FILTERS = st.recursive(
    COMPARISONS | st.builds(lambda text: {"sql": text}, EXPRESSIONS),
    lambda inner: st.one_of(
        st.builds(
            lambda name, parts: {name: parts}, st.sampled_from(["all", "any"]), st.lists(inner, min_size=1, max_size=3)
        ),
        st.builds(lambda part: {"not": part}, inner),
    ),
    max_leaves=5,
)
INTERESTS = st.builds(
    lambda filters, source, types: SubscriptionInterest(compile_filters(filters), source, types),
    st.lists(FILTERS, max_size=2),
    st.none() | TEXTS,
    st.lists(TEXTS, max_size=2),
)


@given(st.lists(INTERESTS, max_size=6), st.lists(EVENTS, max_size=4))
def test_candidates_leave_nothing_out(interests: list[SubscriptionInterest], events: list[ContextAttributes]) -> None:
    # for each event, the result is the same as that of trying all interests
    index = SubscriptionIndex[int]()
    for key, interest in enumerate(interests):
        index.put(key, interest)
    for event in events:
        expected = {key for key, interest in enumerate(interests) if interest.matches(event)}
        found = index.matches(event)
        assert set(found) == expected and len(found) == len(expected)
        candidates = index.candidates(event)
        assert len(set(candidates)) == len(candidates)


@given(st.lists(st.tuples(st.integers(0, 3), st.none() | INTERESTS), max_size=12), EVENTS)
def test_interests_come_and_go(steps: list[tuple[int, SubscriptionInterest | None]], event: ContextAttributes) -> None:
    # a new interest replaces the one with the same key, and removed ones leave nothing in the index
    index, current = SubscriptionIndex[int](), dict[int, SubscriptionInterest]()
    for key, interest in steps:
        if interest is None:
            index.remove(key)
            current.pop(key, None)
        else:
            index.put(key, interest)
            current[key] = interest
    assert set(index.matches(event)) == {key for key, interest in current.items() if interest.matches(event)}
    for key in range(4):
        index.remove(key)
    assert vars(index) == vars(SubscriptionIndex[int]())


@pytest.mark.parametrize(
    "filters",
    [
        lambda n: [{"exact": {"subject": f"/groups/g{n}"}}],
        lambda n: [{"prefix": {"subject": f"/groups/g{n}/"}}],
        lambda n: [{"sql": f"type = 'created' AND subject LIKE '/groups/g{n}/%'"}],
        lambda n: [{"any": [{"exact": {"subject": f"{n}"}}, {"sql": f"id IN ('{n}', '-{n}')"}]}],
        lambda n: [{"prefix": {"type": "created"}}, {"exact": {"myext": str(n)}}],
    ],
)
def test_few_of_many_are_tried(filters: Callable[[int], Any]) -> None:
    # an event is tried only against the filters that may match it
    tried: list[int] = []
    index = SubscriptionIndex[int]()
    for number in range(1000):
        compiled = compile_filters(filters(number))

        def matches(event: ContextAttributes, number: int = number, compiled: Filter = compiled) -> bool:
            tried.append(number)
            return compiled.matches(event)

        index.put(number, SubscriptionInterest(Filter(matches, compiled.conditions), types=["created"]))
    event = {"id": "7", "source": "/", "type": "created", "subject": "/groups/g7/schemas/s", "myext": "7"}
    index.matches(event)
    assert len(tried) <= 2


def test_source_and_types() -> None:
    # SUB-103: exact and case-sensitive, without wildcards
    interest = SubscriptionInterest(compile_filters(None), "http://x/", ["a", "b"])
    event = {"source": "http://x/", "type": "a"}
    assert interest.matches(event)
    for other in ({"source": "http://x"}, {"source": "HTTP://x/"}, {"type": "A"}, {"type": "ab"}, {"type": "*"}):
        assert not interest.matches({**event, **other})
    assert SubscriptionInterest(compile_filters(None)).matches({})


class Watched(dict[str, str]):
    """An event that records which attributes were read."""

    def __init__(self, **attributes: str) -> None:
        super().__init__(attributes)
        self.read: list[str] = []

    def get(self, name: str, default: Any = None) -> Any:
        self.read.append(name)
        return super().get(name, default)


@pytest.mark.parametrize(
    ("attributes", "read"),
    [
        ({"source": "x"}, ["source"]),
        ({"source": "/", "type": "x"}, ["source", "type"]),
        ({"source": "/", "type": "t"}, ["source", "type", "one"]),
        ({"source": "/", "type": "t", "one": "1"}, ["source", "type", "one", "two"]),
        ({"source": "/", "type": "t", "one": "1", "two": "2"}, ["source", "type", "one", "two", "three"]),
    ],
)
def test_evaluation_stops_at_the_first_false(attributes: dict[str, str], read: list[str]) -> None:
    # SUB-105: source, types, then filters in their order
    filters = [{"exact": {"one": "1"}}, {"sql": "two = '2'"}, {"suffix": {"three": "3"}}]
    event = Watched(**attributes)
    assert not SubscriptionInterest(compile_filters(filters), "/", ["t"]).matches(event)
    assert event.read == read
