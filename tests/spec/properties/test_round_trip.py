"""An export imported into another registry gives an equal registry, on any database (P-15/37)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.support.registries.requests import Registry, Request, serving

FILE = {"singular": "file"}
MODEL = {
    "attributes": {"*": {"type": "any"}},
    "groups": {
        "dirs": {
            "singular": "dir",
            "attributes": {"owner": {"type": "string", "required": True}},
            "resources": {
                "files": FILE,
                "years": {"singular": "year", "hasdocument": False, "versionmode": "createdat"},
                "edits": {"singular": "edit", "hasdocument": False, "versionmode": "modifiedat"},
            },
        },
        "boxes": {"singular": "box"},
    },
}
OLD = "2001-02-03T04:05:06.789Z"
STORY = [
    Request("PATCH", "/", {"name": "all", "colour": [1, {"a": 1.50}]}),
    Request("PUT", "/dirs/a~b", {"owner": "o", "labels": {"x.y": ""}, "createdat": OLD, "deprecated": {}}),
    Request("PUT", "/dirs/a~b/files/text", "hello", {"content-type": "text/plain", "xRegistry-name": "n%20m"}),
    Request("POST", "/dirs/a~b/files/text", b"\x00\xff"),
    Request("POST", "/dirs/a~b/files/text$details", {"file": {"n": 1}, "ancestorid": "1", "createdat": OLD}),
    Request("PATCH", "/dirs/a~b/files/text/meta", {"defaultversionid": "2", "labels": {"a": "b"}}),
    Request("PUT", "/dirs/a~b/files/far$details", {"fileurl": "http://example.com/far", "modifiedat": OLD}),
    Request("PUT", "/dirs/a~b/files/none$details", {}),
    Request("PUT", "/dirs/a~b/years/y", {"versions": {"new": {}, "old": {"createdat": OLD}, "mid": {"name": "m"}}}),
    # Their order is not that of `modifiedat`: a is the newest, but the ancestors of b and d change with it, or later.
    Request("PUT", "/dirs/a~b/edits/e", {"versions": {"a": {}, "b": {}, "c": {}, "d": {}}}),
    Request("PATCH", "/dirs/a~b/edits/e/versions/a", {"name": "newest"}),
    Request("DELETE", "/dirs/a~b/edits/e/versions/c"),
    Request("PUT", "/boxes/b1", {"description": ""}),
    Request("DELETE", "/dirs/a~b/files/none"),
]


@pytest.mark.parametrize("upwards", [True, False], ids=["to PostgreSQL", "to SQLite"])
def test_export_makes_the_same_registry(sqlite_url: str, postgres_url: str, upwards: bool) -> None:
    # P-15/37: an export imported into an empty registry gives the same trees, except for epochs
    first, second = (sqlite_url, postgres_url) if upwards else (postgres_url, sqlite_url)
    exported, imported = asyncio.run(_transferred(first, second, "/export", Request("PUT", "/?ignore=id,epoch")))
    assert _without_epochs(imported) == _without_epochs(exported)


def test_collections_make_the_same_groups(sqlite_url: str, postgres_url: str) -> None:
    # P-15/37: all collections posted to a registry with the same model give the same Groups
    exported, imported = asyncio.run(
        _transferred(sqlite_url, postgres_url, "/?collections", Request("POST", "/"), MODEL)
    )
    assert _without_epochs(imported) == _without_epochs(exported)


async def _transferred(first: str, second: str, path: str, into: Request, model: Any = None) -> tuple[Any, Any]:
    """The response of a registry for a path, and that of a registry into which the first response was imported."""
    async with serving(first, MODEL) as source, serving(second, model) as target:
        for request in STORY:
            answer = await source.ask(request)
            assert 200 <= answer.status < 300, (request, answer)
        content = await _read(source, path)
        answer = await target.ask(into._replace(body=content))
        assert answer.status == 200, answer
        return json.loads(content), json.loads(await _read(target, path))


async def _read(registry: Registry, path: str) -> bytes:
    answer = await registry.ask(Request("GET", path))
    assert answer.status == 200, answer
    return answer.content


def _without_epochs(value: Any) -> Any:
    """A value without epochs."""
    if isinstance(value, list):
        return [_without_epochs(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: _without_epochs(inner) for name, inner in value.items() if name != "epoch"}
