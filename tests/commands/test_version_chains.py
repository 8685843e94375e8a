"""Pruning reads all Versions of a Resource once, and again only after another process has written."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from annals.commands.store.sql_world import SqlWorld
from annals.domain.registry.entities import Entity
from tests.support.registries.in_process import Api, create, serving

MODEL = {
    "groups": {
        "dirs": {
            "singular": "dir",
            "resources": {"files": {"singular": "file", "maxversions": 5, "hasdocument": False}},
        }
    }
}
FILE = "/dirs/d/files/f"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The collections whose members were read."""
    found: list[str] = []
    members = SqlWorld.members

    def noting(world: SqlWorld, collection: str) -> Sequence[Entity]:
        found.append(collection)
        return members(world, collection)

    monkeypatch.setattr(SqlWorld, "members", noting)
    return found


def put(api: Api, *numbers: int) -> None:
    for number in numbers:
        api.done("PUT", f"{FILE}/versions/v{number}", {})


def ids(api: Api) -> list[str]:
    return sorted(api.done("GET", f"{FILE}/versions").json())


def test_versions_are_read_once(store_url: str, reads: list[str]) -> None:
    # ENT-104: adding a Version costs no more at `maxversions` than below it
    create(store_url, MODEL)
    with serving(store_url) as api:
        put(api, *range(10, 16))
        assert reads == [f"{FILE}/versions"]
        put(api, *range(16, 30))
        # the Versions stay known after a refused write and after a dry run, which is undone
        assert api.send("PUT", f"{FILE}/versions/v30", {"nope": 1}).status_code == 400
        assert api.send("PUT", f"{FILE}/versions/v30?dryrun", {}).is_success
        put(api, 31)
        assert (ids(api), reads) == (["v26", "v27", "v28", "v29", "v31"], [f"{FILE}/versions"])


def test_a_change_of_a_version_makes_it_unknown(store_url: str, reads: list[str]) -> None:
    create(store_url, MODEL)
    with serving(store_url) as api:
        put(api, *range(10, 16))
        reads.clear()
        api.done("PATCH", f"{FILE}/versions/v13", {"ancestorid": "v13"})
        reads.clear()
        put(api, 16)
        assert (ids(api), reads) == (["v12", "v13", "v14", "v15", "v16"], [f"{FILE}/versions"])


def test_another_process_makes_it_unknown(store_url: str, reads: list[str]) -> None:
    create(store_url, MODEL)
    with serving(store_url) as api, serving(store_url, ids="other") as other:
        put(api, *range(10, 16))
        put(other, 16)
        reads.clear()
        put(api, 17)
        assert (ids(api), reads) == (["v13", "v14", "v15", "v16", "v17"], [f"{FILE}/versions"])


def test_numbers_in_use_are_read_together(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """ENT-75: the first id that the server assigns, after clients have named Versions "1", "2" ... themselves."""
    create(store_url, {"groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file"}}}}})
    loads: list[set[str]] = []
    load = SqlWorld._load

    def noting(world: SqlWorld, keys: set[str]) -> None:
        loads.append(keys)
        load(world, keys)

    with serving(store_url) as api:
        api.done("PUT", f"{FILE}$details", {"versions": {str(number): {} for number in range(1, 101)}})
        monkeypatch.setattr(SqlWorld, "_load", noting)
        assert api.send("POST", FILE, b"text").headers["location"].endswith("/versions/101")
    assert len(loads) <= 12
