"""Blocks decode to what was encoded, and damaged blocks are refused."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals.commands.store.damage import UnreadableRow
from annals.domain.search.texts import SearchedEntity, Text, TextPlace
from annals.projections.search.blocks import (
    WordBlock,
    decode_entity,
    decode_rows,
    encode_entity,
    encode_rows,
    encode_words,
)

NUMBERS: Final = st.sets(st.integers(0, 2**32 - 1), min_size=1, max_size=20).map(sorted)
ENTRIES: Final = st.dictionaries(st.text("ab#é注\t", min_size=1, max_size=4), NUMBERS, min_size=1, max_size=20)


@given(ENTRIES, st.integers(0, 2**40), st.text("ab#", max_size=2), st.text("ab#", max_size=2))
def test_words(entries: dict[str, list[int]], base: int, low: str, high: str) -> None:
    block = WordBlock(encode_words([(word, entries[word]) for word in sorted(entries)]), base)
    expected = {word: [base + number for number in entries[word]] for word in sorted(entries)}
    assert {word: list(numbers) for word, numbers in block.all()} == expected
    assert list(block.numbers_of([low, high])) == [*expected.get(low, []), *expected.get(high, [])]
    collected: dict[str, list[int]] = {"#": [1]}
    block.collect_numbers(low, high, collected)
    between = [(word, number) for word in expected if low <= word < high for number in expected[word]]
    letters = {"#", *(word[-1] for word, _ in between)}
    assert collected == {
        letter: [*([1] if letter == "#" else []), *(number for word, number in between if word[-1] == letter)]
        for letter in letters
    }


def test_texts() -> None:
    entity = SearchedEntity("/a/b", "a", "", (Text(TextPlace.NAME, "name", "line\nbreak"),), True)
    data = encode_rows([(number, encode_entity(entity)) for number in (0, 7)])
    assert {number: decode_entity(row) for number, row in decode_rows(data, 100)} == {100: entity, 107: entity}


@pytest.mark.parametrize("data", [b"", b"x", None, encode_rows([(0, b"[]")])[:-2]])
def test_damaged_blocks(data: bytes | None) -> None:
    with pytest.raises(UnreadableRow):
        WordBlock(data, 0)
    with pytest.raises(UnreadableRow):
        list(decode_rows(data, 0))
