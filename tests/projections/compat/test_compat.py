"""Reads of published Versions: by number, by URI, as of a position, and through xrefs (LEG-405 to 407, 601 to 610)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import count
from typing import Any

import pytest

from annals.commands.command_bus import handle
from annals.commands.pending_command import PendingCommand
from annals.commands.store.log import Store
from annals.commands.store.write_transaction import Recorded
from annals.domain.compat.legacy_apis import MESSAGECATALOG, SCHEMAREGISTRY
from annals.domain.decisions.commands import (
    Command,
    CreateRegistry,
    DeleteEntities,
    ReplaceModel,
    WriteMethod,
    WriteTree,
)
from annals.projections.compat.versions import CompatVersion, CompatVersions
from annals.projections.entities.apply import EntityProjection
from annals.projections.entities.publications import SqlPublications
from annals.projections.entities.view_pool import ViewPool
from tests.support.compat_commands import URL, C, G, M, S, delete, post, put_group, source

SR = URL + SCHEMAREGISTRY.base


class Registry:
    """A store, and views of its read model."""

    def __init__(self, database: str) -> None:
        ids = count(1)
        self.store = Store(database, public_url=URL, new_id=lambda: f"c{next(ids)}", open_publications=SqlPublications)
        self.readers = ViewPool(database)
        self.store.create()
        with self.store.writing() as tx:
            EntityProjection().create(tx.connection)
        self.do(CreateRegistry("test", source(2)), put_group(G, "Text/1"), put_group(C, "CloudEvents"))

    def do(self, *commands: Command) -> Recorded:
        """Handles commands, all of which must succeed; returns the outcome of the last one."""
        for outcome in handle([PendingCommand(command) for command in commands], self.store, [EntityProjection()]):
            assert isinstance(outcome, Recorded), outcome
        assert isinstance(outcome, Recorded)
        return outcome

    def read(self, position: int | None = None) -> CompatVersions:
        view = self.readers.quick_view()
        return CompatVersions(view if position is None else view.as_of(position))

    def uri(self, uri: str, position: int | None = None) -> str | None:
        """The Version that a URI of a schema identifies: the end of its xid, and `!` if it is retained."""
        return place(self.read(position).by_uri(SCHEMAREGISTRY, uri, (SR, URL)))


def place(found: CompatVersion | None) -> str | None:
    return found and found.row.xid.removeprefix("/schemagroups/g/schemas/") + ("!" if found.is_retained else "")


@pytest.fixture
def registry(store_url: str) -> Iterator[Registry]:
    found = Registry(store_url)
    with closing(found.store), closing(found.readers):
        yield found


def version(id: str, **more: Any) -> WriteTree:
    return WriteTree(f"{S}/versions/{id}", {"format": "Text/1", **more}, WriteMethod.PUT)


def test_the_latest_version_is_found_without_the_list(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    # LEG-407: a POST and a read cost the same in a definition with many versions, also after deletions and prunings
    monkeypatch.setattr(CompatVersions, "numbers", lambda self, xid: pytest.fail("all numbers were read"))

    def latest() -> int:
        found = registry.read().latest(S)
        assert found is not None
        return found.number

    registry.do(ReplaceModel(source(0)), *(post(S, b"%d" % number) for number in range(1, 6)))
    assert latest() == 5
    registry.do(delete(S, 3))
    assert latest() == 5
    registry.do(ReplaceModel(source(2)))
    registry.do(version("named"), post(S, b"6"))
    assert latest() == 7


def test_numbers_are_no_text(registry: Registry) -> None:
    # LEG-407, LEG-408: ten is more than nine, and the default Version does not matter
    registry.do(ReplaceModel(source(0)))
    registry.do(*(post(S, b"%d" % number) for number in range(1, 12)))
    registry.do(WriteTree(f"{S}/meta", {"defaultversionid": "2", "defaultversionsticky": True}, WriteMethod.PATCH))
    assert registry.read().numbers(S) == [*range(1, 12)]
    assert place(registry.read().latest(S)) == "s/versions/11"
    assert registry.read().version(S, 12) is None


def test_kept_ones_are_shown_as_they_were(registry: Registry) -> None:
    # LEG-707, LEG-1204
    registry.do(post(S, b"1", "text/a", description="one"), version("b"), post(S, b"3"))
    found = registry.read().versions(S)
    assert [(one.number, one.row.id, one.is_retained) for one in found] == [
        (1, "1", True),
        (2, "b", False),
        (3, "3", False),
    ]
    first = found[0]
    assert '"description":"one"' in first.row.attributes and '"contenttype":"text/a"' in first.row.attributes
    assert registry.read().version(S, 1) == first
    assert (first.uri, first.id) == (
        f"{SR}/schemagroups/g/schemas/s/versions/1",
        "/schemagroups/g/schemas/s/versions/1",
    )


#: Writes, and URIs with the Versions that they identify afterwards.
WRITES = (
    post(S, b"1"),
    post(f"{S}2", b"1", id="342", authority="https://x.example/registry"),
    post(f"{S}2", b"2", id="HTTPS://Y.example/%7Ea"),
    version("b"),
    version("9"),
    version("10"),
)
URIS: list[tuple[str, str | None]] = [
    (f"{SR}/schemagroups/g/schemas/s/versions/1", "s/versions/1!"),
    (f"{SR.upper().replace('COMPAT/SCHEMAREGISTRY/V', 'compat/schemaregistry/v')}/schemagroups/g/schemas/s/versions/9",
     "s/versions/9"),
    ("/schemagroups/g/schemas/s/version/2", "s/versions/b!"),
    ("/schemagroups/g/schemas/s/versions/b", None),
    (f"{URL}/schemagroups/g/schemas/s/versions/10", "s/versions/10"),
    (f"{S}/versions/9", "s/versions/9"),
    (f"{SR}/schemagroups/g/schemas/s/versions/2", "s/versions/b!"),
    ("https://x.example/registry/342", "s2/versions/1"),
    (f"{SR}/schemagroups/g/schemas/s2/versions/1", "s2/versions/1"),
    ("https://y.example/~a", "s2/versions/2"),
    ("342", None),
    (f"{SR}/schemagroups/g/schemas/s", None),
    (f"{SR}/schemagroups/g/schemas/s/versions/11", None),
    ("https://elsewhere.example/schemagroups/g/schemas/s/versions/1", None),
    ("", None),
]  # fmt: skip


def test_what_uris_mean(registry: Registry) -> None:
    # LEG-607, LEG-608, LEG-610
    registry.do(*WRITES)
    assert [(uri, registry.uri(uri)) for uri, _ in URIS] == URIS


def test_a_uri_outlives_the_url_of_the_registry(registry: Registry) -> None:
    # LEG-604: a Version keeps the URI that was composed with the URL of its time
    registry.do(post(S, b"1"))
    registry.store.public_url = "https://new.example"
    registry.do(post(S, b"2"))
    news = "https://new.example" + SCHEMAREGISTRY.base
    old, new = (f"{base}/schemagroups/g/schemas/s/versions/{number}" for number, base in ((1, SR), (2, news)))
    assert [one.uri for one in registry.read().versions(S)] == [old, new]
    found = [registry.read().by_uri(SCHEMAREGISTRY, uri, (news, "https://new.example")) for uri in (old, new)]
    assert [one and one.number for one in found] == [1, 2]
    wrong = f"{SR}/schemagroups/g/schemas/s/versions/2"
    assert registry.read().by_uri(SCHEMAREGISTRY, wrong, (news, "https://new.example")) is None


def test_each_family_finds_its_own(registry: Registry) -> None:
    # LEG-609
    registry.do(post(S, b"a", id="urn:i"), post(M, b"t", id="urn:i", authority="urn:x"))
    assert registry.uri("urn:i") == "s/versions/1"
    found = registry.read().by_uri(MESSAGECATALOG, "urn:i", ())
    assert found and found.row.xid == f"{M}/versions/1"
    assert registry.read().by_uri(MESSAGECATALOG, f"{S}/versions/1", (URL,)) is None


def test_what_is_deleted_is_not_found_and_was(registry: Registry) -> None:
    # LEG-610, LEG-707, FLAG-80: URIs and numbers as of a position are those of that time
    states = []
    for command in (
        post(S, b"1", id="urn:1"),
        post(S, b"2"),
        post(S, b"3"),
        delete(S, 1),
        DeleteEntities(f"{S}/versions/2"),
        DeleteEntities(G),
    ):
        registry.do(command)
        states.append((registry.store.log_end().position, registry.uri("urn:1"), registry.read().numbers(S)))
    assert [state[1:] for state in states] == [
        ("s/versions/1", [1]),
        ("s/versions/1", [1, 2]),
        ("s/versions/1!", [1, 2, 3]),
        (None, [2, 3]),
        (None, [3]),
        (None, []),
    ]
    assert [(at, registry.uri("urn:1", at), registry.read(at).numbers(S)) for at, *_ in states] == states


def test_a_pointer_shows_what_it_points_at(registry: Registry) -> None:
    # LEG-1207: an xref has the numbers of its target under its own name; a URI that a client chose is the target's only
    registry.do(post(S, b"1", id="urn:1"), version("b"), post(S, b"3"))
    pointer = f"{G}/schemas/p"
    registry.do(WriteTree(f"{pointer}/meta", {"xref": S}, WriteMethod.PUT))
    found = registry.read().versions(pointer)
    assert [(one.number, one.row.xid, one.is_retained) for one in found] == [
        (1, f"{pointer}/versions/1", True),
        (2, f"{pointer}/versions/b", False),
        (3, f"{pointer}/versions/3", False),
    ]
    assert found[0].uri == f"{SR}/schemagroups/g/schemas/p/versions/1"
    assert '"schemaid":"p"' in found[0].row.attributes
    assert [registry.read().version(pointer, one.number) for one in found] == found
    assert (registry.read().latest(pointer), registry.read().numbers(pointer)) == (found[2], [1, 2, 3])
    assert registry.uri(found[0].uri) == "p/versions/1!"
    registry.do(DeleteEntities(S))
    assert registry.read().versions(pointer) == []


def test_ids_have_case(registry: Registry) -> None:
    # LEG-402: look-ups are case-sensitive
    registry.do(post(S, b"1"), post(S, b"2"), post(S, b"3"))
    other = f"{G}/schemas/S"
    assert (registry.read().versions(other), registry.read().numbers(other)) == ([], [])
    assert [registry.read().version(other, number) for number in (1, 3)] == [None, None]


def test_ordinary_versions_take_no_room(registry: Registry) -> None:
    # LEG-405: Versions have no row in `published` if their numbers and URIs follow from the read model
    registry.do(post(S, b"1"), version("7"), DeleteEntities(f"{S}/versions/7"))
    with registry.store.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM published").scalar() == 0
