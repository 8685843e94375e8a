"""Wildcards in filters, as pure functions."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from annals.domain.filters import FilterValue

TEXT = st.text("ab", max_size=8)


@given(st.lists(TEXT, min_size=2, max_size=5), st.lists(TEXT, max_size=5))
def test_a_pattern_fits_what_its_pieces_make(pieces: list[str], made: list[str]) -> None:
    # FLAG-14: a star matches any number of characters, also none; pieces never overlap
    text = "".join(made)
    wanted = re.fullmatch(".*".join(pieces), text) is not None
    assert FilterValue(pieces=tuple(pieces)).matches_text(text) is wanted
    assert FilterValue(pieces=tuple(pieces)).matches_text("a".join(pieces))


def test_many_stars_on_a_long_value() -> None:
    # FLAG-14: one request cannot keep the registry busy; trying all combinations of positions would take too long
    assert not FilterValue(pieces=("", *"a" * 30, "b")).matches_text("a" * 4000)
