"""Which texts a query matches, and what pages mark in them."""

from __future__ import annotations

from typing import Final

import pytest

from annals.domain.search.matching import FIRST_PLACE, ID_EQUAL, ID_PREFIX, marked, rank
from annals.domain.search.query import parse_query
from annals.domain.search.texts import SearchedEntity, Text, TextPlace

ENTITY: Final = SearchedEntity(
    "/schemagroups/shop/schemas/orderPlaced",
    "schemagroups.schemas",
    "avro/1.11",
    (
        Text(TextPlace.ID, "schemaid", "orderPlaced"),
        Text(TextPlace.NAME, "name", "Order, placed"),
        Text(TextPlace.LABEL, "labels.team", "checkout"),
        Text(TextPlace.FIELD, "total.amount", "total.amount"),
        Text(TextPlace.DESCRIPTION, "description", "What a customer has ordered"),
    ),
)
#: Queries and the rank of the entity.
RANKS: Final = [
    ("orderplaced", ID_EQUAL),
    ("order placed", ID_EQUAL),
    ("order", ID_PREFIX),
    ("plac", FIRST_PLACE + TextPlace.ID),
    ("plac in:name", FIRST_PLACE + TextPlace.NAME),
    ("check", FIRST_PLACE + TextPlace.LABEL),
    ("placed check", FIRST_PLACE + TextPlace.LABEL),
    ("total.am", FIRST_PLACE + TextPlace.FIELD),
    ("customer order", FIRST_PLACE + TextPlace.DESCRIPTION),
    ("custom order", None),
    ('"has order"', None),
    ("order format:avro", ID_PREFIX),
    ("order format:avr", None),
    ("order group:/schemagroups/sho", None),
    ("order group:/SchemaGroups/Shop", ID_PREFIX),
]
MARKS: Final = [
    ("tot", "The Total of totals", ["Total", "totals"]),
    ('"unit price"', "unit-price, price", ["unit-price", "price"]),
    ("ordertotal", "orderTotal <b>", ["orderTotal"]),
    ("grosse", "Größe", ["Größe"]),
    ("x", "nothing", []),
]


@pytest.mark.parametrize(("text", "expected"), RANKS)
def test_rank(text: str, expected: int | None) -> None:
    # UI-101, UI-103
    assert rank(parse_query(text), ENTITY) == expected


@pytest.mark.parametrize(("query", "text", "hits"), MARKS)
def test_marked(query: str, text: str, hits: list[str]) -> None:
    # UI-107
    pieces = list(marked(parse_query(query), text))
    assert "".join(piece for piece, _ in pieces) == text
    assert [piece for piece, is_hit in pieces if is_hit] == hits
