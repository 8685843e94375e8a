"""The words of texts."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals.domain.search.words import MAX_WORD_LENGTH, located_units, parts, unicode_parts, unit_parts, units

WORDS: Final = [
    ("orderTotal", [("order", "total")]),
    ("order_total", [("order", "total")]),
    ("order-total", [("order", "total")]),
    ("order.total", [("order",), ("total",)]),
    ("orders[].price", [("orders",), ("price",)]),
    ("HTTPServer", [("http", "server")]),
    ("X509Certificate", [("x509", "certificate")]),
    ("sha256", [("sha256",)]),
    ("Größe", [("grosse",)]),
    ("naïve café", [("naive",), ("cafe",)]),
    ("İSTANBUL", [("istanbul",)]),
    ("注文 合計", [("注文",), ("合計",)]),
    ("(gross), in EUR.", [("gross",), ("in",), ("eur",)]),
    ("-- _ !", []),
]


@pytest.mark.parametrize(("text", "found"), WORDS)
def test_units(text: str, found: list[tuple[str, ...]]) -> None:
    # UI-101
    assert list(units(text)) == found


@given(st.text("ABab12_-x", max_size=12))
def test_ascii_is_split_as_all_other_text_is(unit: str) -> None:
    assert unit_parts(unit) == unicode_parts(unit)


@given(st.text(max_size=60))
def test_words_are_the_same_when_they_are_split_again(text: str) -> None:
    for part in parts(text):
        assert 0 < len(part) <= MAX_WORD_LENGTH and "\n" not in part and "\t" not in part
        assert part[0] not in "#!="


@given(st.text(max_size=60))
def test_units_are_where_they_are_said_to_be(text: str) -> None:
    located = list(located_units(text))
    assert [unit for _, _, unit in located] == list(units(text))
    assert all(list(units(text[start:end])) == [unit] for start, end, unit in located)
