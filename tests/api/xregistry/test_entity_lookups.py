"""Look-ups that share a statement: each gets its own row, document or error."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import Any

import pytest

from annals.api.xregistry.entity_lookups import EntityLookups
from annals.projections.entities.query import FoundEntity, View, ViewPool
from tests.support.registries.in_process import create, serving


def test_each_gets_its_own(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    create(store_url)
    with serving(store_url) as api:
        api.done("PUT", "/dirs/d1/files/f1", b"one")
        api.done("PUT", "/dirs/d1/files/f2", b"two")
        api.done("PUT", "/dirs/d1/files/f2/versions/2$details", {})
    together: list[int] = []

    def counted(view: View, xids: Any, *arguments: Any) -> Any:
        names = list(xids)
        together.append(len(names))
        return look_up_values(view, names, *arguments)

    look_up_values = View.look_up_values
    monkeypatch.setattr(View, "look_up_values", counted)
    asked = [
        ("/dirs/d1/files/f1/versions/1", True),
        ("/dirs/d1/files/f2/versions/1", True),
        ("/dirs/d1/files/f2/versions/2", True),
        ("/dirs/d1/files/none", True),
        ("/dirs/d1", False),
        ("/dirs/D1", False),
        ("/dirs/d1", False),
    ]

    async def find_all(more: list[str]) -> list[Any]:
        lookups = EntityLookups(readers)
        searches = [lookups.find(*each) for each in [*asked, *((xid, False) for xid in more)]]
        return await asyncio.gather(*searches, return_exceptions=True)

    with closing(ViewPool(store_url)) as readers:
        view = readers.quick_view()
        expected = [view.look_up(xid, with_document) for xid, with_document in asked]
        assert [found.content for found in expected[:4]] == [b"one", b"two", b"", b""]
        assert [found.row and found.row.xid for found in expected[3:]] == [None, "/dirs/d1", None, "/dirs/d1"]
        assert asyncio.run(find_all([])) == expected
        assert together == ([4, 3] if readers.has_round_trips else [])
        *found, broken = asyncio.run(find_all(["/dirs/\0"]))  # no text for PostgreSQL
        assert found == expected
        assert isinstance(broken, Exception if readers.has_round_trips else FoundEntity)


def test_a_cancelled_one_does_not_disturb_others(store_url: str) -> None:
    create(store_url)

    async def run() -> FoundEntity:
        lookups = EntityLookups(readers)
        first = asyncio.create_task(lookups.find("/", False))
        second = asyncio.create_task(lookups.find("/", False))
        await asyncio.sleep(0)
        first.cancel()
        return await second

    with closing(ViewPool(store_url)) as readers:
        row = asyncio.run(run()).row
        assert row is not None and row.xid == "/"
