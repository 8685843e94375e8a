"""`/-/counts`: the numbers of entities by type agree with an export, at each moment and for each caller."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from annals.projections.entities.type_counts import TypeCounts
from annals.projections.entities.view import View
from tests.support.registries.in_process import Api, create, serving

TOKENS = {"w": {"name": "ada", "role": "writer"}, "g": {"name": "gina", "groups": {"/dirs/d1": "reader"}}}


@pytest.fixture
def api(store_url: str) -> Iterator[Api]:
    create(store_url)
    with serving(store_url, tokens=json.dumps(TOKENS)) as api:
        groups = {"d1": {"files": {"f": {}, "g": {"versions": {"1": {}, "2": {}}}}, "notes": {"n": {}}}, "d2": {}}
        api.done("POST", "/dirs", groups, authorization="Bearer w")
        api.done("DELETE", "/dirs/d1/files/f", authorization="Bearer w")
        yield api


def counted(tree: dict[str, Any], type: str = "") -> Counter[str]:
    """The number of entities below an exported entity, by type."""
    found = Counter[str]()
    for plural in ("dirs", "files", "notes", "versions"):
        inner = f"{type}.{plural}".strip(".")
        for child in tree.get(plural, {}).values():
            found[inner] += 1
            found += counted(child, inner)
    return found


def exported(api: Api, path: str, query: str, token: str) -> Any:
    """An entity with everything below it; empty if it does not exist for the caller."""
    details = "$details" if "/files/" in path else ""
    answer = api.send("GET", f"{path or '/'}{details}?inline=*{query}", authorization=f"Bearer {token}")
    return answer.json() if answer.status_code == 200 else {}


@pytest.mark.parametrize("token", TOKENS)
def test_counts_are_those_of_the_export(api: Api, token: str) -> None:
    """UI-40, UI-85, ACC-75."""
    for path, asof in product(("", "/dirs/d1", "/dirs/d1/files/g", "/dirs/d2"), (None, 3, 10, 12)):
        query = f"&asof={asof}" if asof else ""
        found = api.send("GET", f"/-/counts{path}?{query}", authorization=f"Bearer {token}")
        if token == "g" and path == "/dirs/d2":
            assert found.status_code == 404
            continue
        type = ".".join(["dirs", "files"][: path.count("/") // 2])
        expected = counted(exported(api, path, query, token), type)
        assert {each["type"]: each["count"] for each in found.json()["counts"]} == dict(expected), (path, asof)


def test_other_formats_and_mistakes(api: Api) -> None:
    headers = {"authorization": "Bearer w"}
    assert api.send("GET", "/-/counts/dirs/d1?format=csv", **headers).text.splitlines()[0] == "type,count"
    assert api.send("GET", "/-/counts?asof=never", **headers).status_code == 400
    assert api.send("GET", "/-/counts?of=dirs", **headers).status_code == 400
    assert api.send("GET", "/-/counts/dirs/none", **headers).json()["counts"] == []
    assert api.send("POST", "/-/counts", **headers).status_code == 405


def test_counts_follow_changes(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """UI-18: the cached counts stay correct after each change; the entities are not counted again."""
    counted_in, count_all = list[View](), View._all_counts

    def note_and_count(view: View) -> TypeCounts:
        counted_in.append(view)
        return count_all(view)

    monkeypatch.setattr(View, "_all_counts", note_and_count)
    api.send("GET", "/-/counts", authorization="Bearer w")
    assert len(counted_in) == 1
    model = api.send("GET", "/modelsource", authorization="Bearer w").json()
    writes: list[tuple[str, str, Any]] = [
        ("PUT", "/dirs/d1/files/g/versions/3", {}),
        ("POST", "/dirs", {"d3": {"files": {"f": {}}}, "d4": {}}),
        ("DELETE", "/dirs/d1/files/g/versions/1", None),
        ("PUT", "/dirs/d1/files/x", {"meta": {"xref": "/dirs/d1/files/g"}}),
        ("PATCH", "/capabilities", {"shortself": False}),
        (
            "PUT",
            "/modelsource",
            model | {"description": "x"},
        ),
        ("DELETE", "/dirs/d1", None),
        ("DELETE", "/dirs/d3", None),
        ("DELETE", "/dirs/d4", None),
        ("DELETE", "/dirs/d2", None),
    ]
    for method, path, body in writes:
        details = "$details" if "/files/" in path and method == "PUT" else ""
        api.done(method, path + details, body, authorization="Bearer w")
        counted_in.clear()
        found = api.send("GET", "/-/counts", authorization="Bearer w").json()
        assert counted_in == []
        again = api.send("GET", f"/-/counts?asof={found['position']}", authorization="Bearer w").json()
        assert found["counts"] == again["counts"], path
