"""A restore of the whole registry, with its model, gives the state of any earlier moment."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from annals.domain.decisions.commands import Command, Restore
from annals.domain.errors.problems import Problem
from tests.support.examples import examples
from tests.support.histories import POINTERS, UNHURRIED, Step, command, histories
from tests.support.registries.memory import MemoryRegistry, past_state, state_below


@st.composite
def _histories(draw: DrawFn) -> list[Command]:
    """Histories with documents or without, and with xrefs among the writes."""
    steps: list[Step] = draw(histories(documents=draw(st.booleans()), most=12))
    for step in draw(st.lists(POINTERS, max_size=5)):
        steps.insert(draw(st.integers(1, len(steps))), step)
    return [command(step) for step in steps]


_MOMENTS: SearchStrategy[int] = st.integers(0, 40)


@settings(max_examples=examples(1000), **UNHURRIED)
@given(_histories(), _MOMENTS)
def test_each_earlier_state_can_be_restored(history: list[Command], moment: int) -> None:
    """FLAG-81: the entities, documents, model and capabilities of then, in one interaction; a second one is empty."""
    registry = MemoryRegistry()
    ends = [len(registry.log)]
    for each in history:
        try:
            registry.do(each)
        except Problem:
            continue
        ends.append(len(registry.log))
    position = ends[moment % len(ends)]
    whole = Restore("/", position, frozenset(("model", "capabilities")))
    registry.do(whole)
    assert state_below(registry.world) == past_state(registry, position)
    assert registry.do(whole).events == ()
