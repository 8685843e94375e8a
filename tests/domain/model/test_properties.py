"""Properties that hold for every value."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from annals.domain.errors.problems import Problem
from annals.domain.model import compile_model
from annals.domain.model.validation.rfc3339 import to_utc
from annals.domain.model.validation.values import string_form
from annals.domain.values import timestamps
from annals.domain.values.json_text import dumps, loads

NAMES = st.sampled_from(["a", "b", "c", "d", "o", "m", "x_1", "X", "labels", "name"])
# As the JSON reader returns them: integers beyond 64 bits are Decimals.
INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.integers(min_value=2**63).map(Decimal)
SCALARS = st.none() | st.booleans() | INTEGERS | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner), max_leaves=8)

SIBLING = {"b": {"type": "integer", "required": True, "default": 3}}
OBJECT: dict[str, Any] = {
    "type": "object",
    "attributes": {
        "a": {"type": "string", "required": True, "default": "x", "ifvalues": {"y": {"siblingattributes": SIBLING}}},
        "c": {"type": "map", "item": {"type": "array", "item": {"type": "decimal"}}},
        "*": {"type": "any"},
    },
}
LEVEL = (
    compile_model(
        {
            "groups": {
                "dirs": {
                    "singular": "dir",
                    "attributes": {
                        **OBJECT["attributes"],
                        "o": OBJECT,
                        "m": {"type": "map", "item": OBJECT},
                        "t": {"type": "timestamp"},
                    },
                }
            }
        }
    )
    .groups["dirs"]
    .level
)
IDS = {"dirid": "d", "createdat": "2025-01-01T00:00:00Z", "modifiedat": "2025-01-01T00:00:00Z"}

OFFSETS = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=OFFSETS)


@given(st.dictionaries(NAMES, VALUES))
def test_completing_twice_changes_nothing(attributes: dict[str, Any]) -> None:
    # ENT-20, MOD-10: stored attributes are complete, so a later check changes nothing
    given_ = LEVEL.accept(attributes) | IDS
    try:
        done = LEVEL.complete(given_, "/dirs/d")
    except Problem:
        return
    again = LEVEL.complete(done, "/dirs/d")
    assert dumps(again) == dumps(done)
    assert list(LEVEL.order(done)) == list(done)
    assert None not in done.values()


@given(MOMENTS, st.text("0123456789", max_size=12))
def test_timestamps_are_the_same_instant_in_utc(moment: datetime, digits: str) -> None:
    # SER-11, ENT-61: RFC 3339 with Z, with the fraction digits as given, the same instant
    sent = moment.replace(microsecond=0).isoformat()
    if digits:
        sent = f"{sent[:19]}.{digits}{sent[19:]}"
    converted = to_utc(sent)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", converted)
    assert converted[19:-1] == (f".{digits}" if digits else "")
    assert datetime.fromisoformat(converted[:19]).replace(tzinfo=UTC) == moment.replace(microsecond=0)
    assert to_utc(converted) == converted
    assert timestamps.instant_key(converted) == timestamps.instant_key(to_utc(converted[:-1] + "+00:00"))


@given(
    st.integers()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.floats(allow_nan=False, allow_infinity=False)
)
def test_numbers_have_one_string_form(number: int | float | Decimal) -> None:
    # MOD-24: the string form is JSON text of the same number
    assert Decimal(string_form(number)) == Decimal(str(number))
    loads(string_form(number))
