"""The places where a caller has roles: Groups, and patterns that match Groups."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals.api.auth.caller_entries import parse_group_roles
from annals.domain.access.places import MAX_PLACES, MAX_WILDCARDS, check_place, check_places, matches
from annals.domain.access.roles import Caller, Role


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("/dirs/d1", "/dirs/d1"),
        ("/Dirs/D1", "/dirs/d1"),
        ("/*/Team-A", "/*/team-a"),
        ("/schemagroups/pay-*", "/schemagroups/pay-*"),
        ("/*/*", "/*/*"),
        ("/d*s/a.b~c:d@e_f-*", "/d*s/a.b~c:d@e_f-*"),
        ("/dirs/" + "*" * MAX_WILDCARDS, "/dirs/" + "*" * MAX_WILDCARDS),
    ],
)
def test_a_place_is_a_group_or_a_pattern_of_groups_in_any_letter_case(text: str, place: str) -> None:
    # ACC-60: letter case is ignored
    assert check_place(text) == place


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "/dirs",
        "dirs/d1",
        "/dirs/",
        "//d1",
        "/dirs/d1/files/f1",
        "/dirs/d1\n",
        "/dirs/d!files!f",
        '/dirs/d"',
        "/dirs/d?",
        "/dirs/ü*",
        "/-/links",
        "/dirs/" + "*" * (MAX_WILDCARDS + 1),
        "/*/" + "a*" * MAX_WILDCARDS,
        None,
        7,
    ],
)
def test_what_is_no_place_is_refused_by_name(text: Any) -> None:
    # ACC-60: at most 8 wildcards in the collection's name and the id together; nothing below a Group is a place
    with pytest.raises(ValueError, match=r"is no place|has more than 8 wildcards") as refused:
        check_place(text)
    assert f'"{text}"' in str(refused.value)


def test_a_caller_has_at_most_100_places() -> None:
    # ACC-60
    places = [f"/dirs/d{number}" for number in range(MAX_PLACES)]
    assert check_places(places) == places
    with pytest.raises(ValueError, match="more than 100 places"):
        check_places([*places, "/dirs/one-more"])


#: Places with roles, an xid, and the role there.
HELD: list[tuple[dict[str, str], str, Role | None]] = [
    ({"/dirs/d1": "writer"}, "/dirs/d1", Role.WRITER),
    ({"/dirs/d1": "writer"}, "/dirs/D1/files/f/versions/1", Role.WRITER),
    ({"/Dirs/D1": "writer"}, "/dirs/d1/files", Role.WRITER),
    ({"/dirs/d1": "writer"}, "/dirs/d10", None),
    ({"/dirs/d1": "writer"}, "/dirs", None),
    ({"/dirs/d1": "writer"}, "/", None),
    ({"/dirs/d*": "reader"}, "/dirs/d", Role.READER),
    ({"/dirs/d*": "reader"}, "/dirs/Dx/files/f", Role.READER),
    ({"/dirs/d*": "reader"}, "/dirs/x/files/d1", None),
    ({"/*/team-a": "reader"}, "/boxes/Team-A", Role.READER),
    ({"/*/team-a": "reader"}, "/boxes/team-ab", None),
    ({"/*/team-a": "reader"}, "/boxes/b/files/team-a", None),
    ({"/dirs/a*c*e": "reader"}, "/dirs/abcde", Role.READER),
    ({"/dirs/a*c*e": "reader"}, "/dirs/abcd", None),
    ({"/dirs/a.c": "reader"}, "/dirs/abc", None),
    ({"/*/*": "admin"}, "/dirs/d1", Role.ADMIN),
    ({"/*/*": "admin"}, "/dirs", None),
    ({"/*/*": "admin"}, "/subscriptions/s", None),
    ({"/*/*": "admin"}, "/-/links/l", None),
    # of all roles that match a place, the highest holds
    ({"/dirs/d1": "reader", "/dirs/d*": "writer"}, "/dirs/d1", Role.WRITER),
    ({"/dirs/d1": "admin", "/dirs/d*": "writer"}, "/dirs/d1", Role.ADMIN),
    ({"/dirs/d1": "admin", "/dirs/d*": "writer"}, "/dirs/d2", Role.WRITER),
    ({"/dirs/*": "reader", "/*/d1": "writer"}, "/dirs/d1", Role.WRITER),
    ({"/dirs/D1": "writer", "/dirs/d1": "reader"}, "/dirs/d1", Role.WRITER),
    ({"/dirs/d1": "reader", "/dirs/D1": "writer"}, "/dirs/d1", Role.WRITER),
]


@pytest.mark.parametrize(("groups", "xid", "role"), HELD, ids=str)
def test_the_highest_role_at_a_place_holds(groups: dict[str, str], xid: str, role: Role | None) -> None:
    # ACC-60, ACC-61
    caller = Caller("c", groups=parse_group_roles(groups))
    assert caller.role_at(xid) is role
    assert caller.can_read(xid) is (role is not None)


def test_a_role_for_the_registry_holds_at_each_place_unless_another_is_higher() -> None:
    # ACC-61: the highest of the matching roles holds
    caller = Caller("c", Role.WRITER, {"/dirs/a*": Role.READER, "/dirs/b*": Role.ADMIN})
    assert [caller.role_at(f"/dirs/{id}") for id in "abc"] == [Role.WRITER, Role.ADMIN, Role.WRITER]


@given(st.text("ab*", min_size=1, max_size=8), st.text("ab", min_size=1, max_size=8))
def test_a_wildcard_is_any_run_of_characters(id: str, text: str) -> None:
    # ACC-60
    assert matches(f"/dirs/{id}", f"/dirs/{text}") == fnmatchcase(text, id)


def test_a_pattern_that_nearly_matches_costs_little() -> None:
    # ACC-60: trying each way to match eight wildcards would take years
    assert not matches("/dirs/" + "*a" * 7 + "*b", "/dirs/" + "a" * 128)
