"""Ids of the legacy APIs and of the registry: the table in ids.yaml, and round trips in both directions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from annals.domain.compat.ids import decode_segment, encode_segment, to_legacy_id, to_registry_id
from annals.domain.values import xid as xids

#: Texts that look like the escaped form of an id, and often are one.
LIKE_MADE = r"_~([a-c_.:]|~(7E|5F|20|61|2f|FF|00)){0,12}"
TABLE = yaml.load(Path(__file__).with_name("ids.yaml").read_text(), yaml.CSafeLoader)


def rows(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", TABLE[name], ids=[row["rule"] for row in TABLE[name]])


@rows("ids")
def test_row(row: dict[str, Any]) -> None:
    # LEG-401, LEG-403, LEG-404
    id = decode_segment(row["segment"])
    found = {"id": id, "xid": to_registry_id(id), "back": to_legacy_id(row["xid"]), "listed": encode_segment(id)}
    listed = row.get("listed", row["segment"])
    assert found == {"id": row["id"], "xid": row["xid"], "back": row["id"], "listed": listed}


@rows("refused")
def test_what_is_no_id(row: dict[str, Any]) -> None:
    # LEG-401, LEG-1109
    with pytest.raises(ValueError, match=r"its? |path"):
        decode_segment(row["segment"])


@rows("foreign")
def test_registry_ids_that_look_escaped_stay_the_same(row: dict[str, Any]) -> None:
    # LEG-404: they are listed as they are, and found by that id
    assert (to_legacy_id(row["xid"]), to_registry_id(row["xid"])) == (row["xid"], row["xid"])


def test_names_are_as_long_as_ids_are() -> None:
    # LEG-403: a registry id has at most 128 characters, including escapes
    assert to_registry_id("a" * 128) == "a" * 128
    assert to_registry_id(" " + "a" * 123) == "_~~20" + "a" * 123
    for id in ("a" * 129, " " + "a" * 124, "ä" * 22):
        with pytest.raises(ValueError, match="128"):
            to_registry_id(id)


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Cn"]), min_size=1, max_size=20))
def test_every_id_comes_back(id: str) -> None:
    # LEG-401, LEG-403: a registry id converts back to its legacy id, so no two ids share one; the same for segments
    if id in (".", "..") or len(id.encode()) > 40:
        return
    assert xids.ID.match(to_registry_id(id))
    assert to_legacy_id(to_registry_id(id)) == id
    assert decode_segment(encode_segment(id)) == id
    assert ":" not in encode_segment(id)


@given(st.from_regex(xids.ID, fullmatch=True) | st.from_regex(LIKE_MADE, fullmatch=True))
def test_every_name_is_one_id(xid: str) -> None:
    # LEG-404: ids that xRegistry clients chose have a segment too, and are found by it
    id = to_legacy_id(xid)
    assert to_registry_id(id) == xid
    assert decode_segment(encode_segment(id)) == id
