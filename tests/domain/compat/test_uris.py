"""URIs of Versions: the tables in uris.yaml, and look-ups of default URIs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from annals.domain.compat import uris
from annals.domain.compat.ids import to_registry_id
from annals.domain.compat.legacy_apis import LEGACY_APIS, MESSAGECATALOG, SCHEMAREGISTRY, LegacyApi

TABLE = yaml.load(Path(__file__).with_name("uris.yaml").read_text(), yaml.CSafeLoader)
ROOT = "https://h/r"
BASES = (ROOT, *(ROOT + family.base for family in LEGACY_APIS), "http://old.example")
IDS = st.text(st.characters(exclude_categories=["Cc", "Cs", "Cn"]), min_size=1, max_size=8)


def rows(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", TABLE[name], ids=[row["rule"] for row in TABLE[name]])


@rows("composed")
def test_composed(row: dict[str, Any]) -> None:
    # LEG-601, LEG-602, LEG-603, LEG-607
    path = uris.default_version_path(SCHEMAREGISTRY, "g", "s", 2)
    base = "https://h/compat/schemaregistry/v0.2"
    assert uris.compose_uri(row.get("authority"), row.get("id"), base, path) == row["uri"]


@rows("checked")
def test_checked(row: dict[str, Any]) -> None:
    # LEG-603
    def passes(check: Callable[[str], str]) -> bool:
        try:
            return check(row["value"]) == str(row["value"])
        except ValueError:
            return False

    assert (passes(uris.check_uri), passes(uris.check_reference)) == (row["uri"], row["reference"])


@rows("normalised")
def test_normalised(row: dict[str, Any]) -> None:
    # LEG-608
    assert list(uris.uri_candidates(row["uri"])) == row["is"]
    assert uris.normalize_uri(row["is"][0]) == row["is"][0]


@rows("located")
def test_located(row: dict[str, Any]) -> None:
    # LEG-608, LEG-609
    found = [uris.locate_version(family, row["uri"], BASES) for family in LEGACY_APIS]
    assert [each and list(each) for each in found] == row["is"]


@pytest.mark.parametrize("family", LEGACY_APIS, ids=[family.name for family in LEGACY_APIS])
@given(groupid=IDS, id=IDS, number=st.integers(1, 10**6))
def test_default_uris_are_found(family: LegacyApi, groupid: str, id: str, number: int) -> None:
    # LEG-607, LEG-608, LEG-1005: by the path of a Version and by its full URI, for any ids
    if {groupid, id} & {".", ".."}:
        return
    names = to_registry_id(groupid), to_registry_id(id)
    path = uris.default_version_path(family, groupid, id, number)
    assert path == uris.entity_path(f"/{family.groups}/{names[0]}/{family.resources}/{names[1]}", number)
    uri = uris.compose_uri(None, None, ROOT + family.base, path)
    assert uris.check_uri(uri) == uri
    for uri_or_path in (uri, path):
        assert uris.locate_version(family, uri_or_path, BASES) == (*names, number)


def test_paths_of_what_is_no_version() -> None:
    # LEG-1002, LEG-1005: subjects of events about Groups and definitions; other entities have no path
    assert uris.entity_path("/schemagroups/a:b") == "/schemagroups/a%3Ab"
    assert (
        uris.entity_path("/messagegroups/g/messages/_~my~20msg~21") == "/messagecatalog/g/messagedefinitions/my%20msg!"
    )
    for xid in ("/endpoints/e", "/endpoints/e/messages/m", "/"):
        with pytest.raises(ValueError, match=xid):
            uris.entity_path(xid)


@given(st.text(max_size=60))
def test_no_text_breaks_a_lookup(text: str) -> None:
    # LEG-212: clients can look up any text
    assert uris.normalize_uri(uris.normalize_uri(text)) == uris.normalize_uri(text)
    assert uris.locate_version(MESSAGECATALOG, text, BASES) is None
