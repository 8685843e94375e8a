"""Names of subjects and contexts, and the ids of their Resources and Groups."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals.domain.confluent.subjects import (
    ContextIds,
    EntityMembers,
    Subject,
    candidate_ids,
    id_for,
    name_of_id,
    parse_context,
    parse_subject,
)
from annals.domain.values import xid as xids


@pytest.mark.parametrize(
    ("text", "subject", "shown"),
    [
        ("orders", Subject(".", "orders"), "orders"),
        (":.lab:orders", Subject(".lab", "orders"), ":.lab:orders"),
        (":.:orders", Subject(".", "orders"), "orders"),
        (":.lab:", Subject(".lab", ""), ":.lab:"),
        (":.lab", Subject(".lab", ""), ":.lab:"),
        ("a:b", Subject(".", "a:b"), "a:b"),
    ],
)
def test_qualified_names(text: str, subject: Subject, shown: str) -> None:
    # CSR-301, CSR-303
    assert parse_subject(text) == subject
    assert subject.qualified == shown


def test_contexts_of_paths() -> None:
    # CSR-302
    assert [parse_context(text) for text in (".lab", "lab", ":.lab:", ".", "a:b")] == [
        ".lab",
        ".lab",
        ".lab",
        ".",
        None,
    ]


@pytest.mark.parametrize(
    ("name", "id"),
    [("orders-value", "orders-value"), ("a b", "_~a~20b"), ("_~x", "_~:_~7Ex"), ("Ä", "_~~C3~84")],
)
def test_ids_of_names(name: str, id: str) -> None:
    # CSR-308
    assert candidate_ids(name)[0] == id


def test_names_in_another_letter_case_have_ids_of_their_own() -> None:
    # CSR-309
    taken = {"orders"}
    assert id_for("Orders", lambda id: id.lower() not in taken) == "_~:~4Frders"


@given(st.text(min_size=1, max_size=200))
def test_every_name_has_legal_ids_and_no_two_share_their_last_one(name: str) -> None:
    # CSR-308, CSR-309
    try:
        name.encode()
    except UnicodeEncodeError:
        return
    ids = candidate_ids(name)
    assert all(xids.ID.match(id) for id in ids)
    assert ids[-1].startswith("_~::")
    if not ids[0].startswith("_~:"):
        assert name_of_id(ids[0]) == name


def test_the_default_context_has_a_group_of_its_own() -> None:
    # CSR-306
    ids = ContextIds("default")
    assert ids.group_of(".", lambda xid: None) == ("default", False)
    assert ids.group_of(".lab", lambda xid: None) == ("lab", False)
    assert ids.group_of(".default", lambda xid: None) == ("_~:default", False)
    there = EntityMembers({}, {})
    assert ids.group_of(".lab", lambda xid: there if xid == "/schemagroups/lab" else None) == ("lab", True)
    assert (ids.context_of("default"), ids.context_of("lab"), ids.context_of("_~:default", "default")) == (
        ".",
        ".lab",
        ".default",
    )
