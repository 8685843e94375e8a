"""`/-/restore` over HTTP: it writes a past state as one new interaction, or refuses the request."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annals.commands.store.log import Store
from annals.commands.verify.verify_log import verify_log, verify_row_hashes
from tests.api.xregistry.test_dryrun import store
from tests.support.examples import examples
from tests.support.histories import Step, as_request, histories
from tests.support.registries.in_process import Api, create, serving
from tests.support.registries.requests import Registry, Request
from tests.support.registries.requests import serving as recording_registry

ID = "xregistry-xregcorrelationid"
NOW = "2026-01-02T03:04:05.000000Z"
TOKENS = {
    "write": {"name": "walt", "role": "writer"},
    "d": {"name": "dora", "groups": {"/dirs/d": "writer"}},
}


@pytest.fixture
def past(api: Api) -> Api:
    """A file with a binary document, whose interaction ends at position 7; then everything is deleted."""
    api.done("PUT", "/dirs/d/files/f", b"\x00\xff", content_type="image/x")
    api.done("DELETE", "/dirs")
    return api


@pytest.mark.parametrize("asof", ["7", "8", "ID1"])
def test_a_deleted_entity_is_restored(past: Api, asof: str) -> None:
    # FLAG-81: one ordinary interaction, whose counts are returned; documents have the same bytes; a second restore
    # writes nothing
    found = past.done("POST", f"/-/restore/dirs/d?asof={asof}")
    summary = {
        "xid": "/dirs/d",
        "asof": {"position": 7, "time": NOW, "xregcorrelationid": "id1"},
        **{"created": 3, "updated": 1, "deleted": 0, "position": 15},
    }
    assert (found.status_code, found.json(), found.headers[ID]) == (200, summary, "id3")
    document = past.send("GET", "/dirs/d/files/f")
    assert (document.content, document.headers["content-type"]) == (b"\x00\xff", "image/x")
    again = past.done("POST", f"/-/restore/dirs/d?asof={asof}")
    assert again.json() == {**summary, "created": 0, "updated": 0}
    assert ID not in again.headers


@pytest.mark.parametrize(
    ("path", "status", "name"),
    [
        ("dirs/d", 400, "bad_request"),
        ("dirs/d?asof=", 400, "bad_request"),
        ("dirs/d?asof=7&asof=8", 400, "bad_request"),
        ("dirs/d?asof=99", 400, "bad_request"),
        ("dirs/d?asof=nobody", 400, "bad_request"),
        ("dirs/d?asof=7&nope", 400, "bad_request"),
        ("dirs/d?asof=7&include=model", 400, "bad_request"),
        ("?asof=7&include=nope", 400, "bad_request"),
        ("dirs/d?asof=7&setdefaultversionid=1", 400, "bad_flag"),
        ("dirs/d?asof=7&ignore", 400, "bad_flag"),
        ("dirs/d?asof=3", 404, "not_found"),
        ("dirs/e?asof=7", 404, "not_found"),
        ("nope/d?asof=7", 404, "not_found"),
        ("export?asof=7", 404, "not_found"),
    ],
)
def test_refused(past: Api, path: str, status: int, name: str) -> None:
    # FLAG-80, FLAG-81: malformed, unknown and future moments, flags of other writes, entities that did not exist
    before = past.get("/-/log/head")
    found = past.send("POST", f"/-/restore/{path}")
    assert (found.status_code, found.json()["type"].rpartition("#")[2]) == (status, name)
    assert found.headers["content-type"] == "application/problem+json"
    assert past.get("/-/log/head") == before


def test_capabilities_come_back_with_the_data_that_used_others(api: Api) -> None:
    # CAP-15: a restore judges what is in use by the data that it leaves, not by what it removes
    type = {"singular": "text", "versionmode": "createdat", "validateformat": True}
    api.done("PATCH", "/capabilities", {"formats": [], "compatibilities": {}, "versionmodes": ["manual"]})
    before = api.get("/capabilities")
    api.done("PATCH", "/capabilities", {"formats": ["Avro/*"], "versionmodes": ["manual", "createdat"]})
    api.done("PUT", "/modelsource", {"groups": {"dirs": {"singular": "dir", "resources": {"texts": type}}}})
    text = api.done("PUT", "/dirs/d/texts/t$details", {"format": "Avro/1.11", "text": {"type": "string"}})
    assert text.json()["formatvalidated"] is True
    api.done("POST", "/-/restore/?asof=ID1&include=model,capabilities")
    assert api.get("/capabilities") == before
    assert list(api.get("/model")["groups"]["dirs"]["resources"]) == ["files", "notes"]


def test_methods(past: Api) -> None:
    # HTTP: a restore is a POST without a body; the capabilities can switch it off
    assert past.send("OPTIONS", "/-/restore/dirs/d").headers["allow"] == "OPTIONS, POST"
    assert past.send("GET", "/-/restore/dirs/d?asof=7").headers["allow"] == "OPTIONS, POST"
    assert past.send("POST", "/-/restore/dirs/d?asof=7", b"x").status_code == 413
    available = {"capabilities": {"mutable": True}, "entities": {"mutable": False}, "model": {"mutable": False}}
    past.done("PATCH", "/capabilities", {"available": available})
    for path in ("dirs/d?asof=7", "model?asof=7"):
        refused = past.send("POST", f"/-/restore/{path}")
        assert (refused.status_code, refused.headers["allow"]) == (405, "OPTIONS, POST")
    assert past.done("POST", "/-/restore/capabilities?asof=7").json()["updated"] == 2
    assert past.done("POST", "/-/restore/dirs/d?asof=7").json()["created"] == 3


def test_who_may_restore(store_url: str) -> None:
    # Callers: a restore needs write access there, and for a Resource with an xref also read access to its target
    create(store_url)
    with serving(store_url, tokens=json.dumps(TOKENS)) as api:

        def restore(path: str) -> int:
            return api.send("POST", f"/-/restore/{path}", authorization="Bearer d").status_code

        def write(method: str, path: str, body: Any = None) -> None:
            api.done(method, path, body, authorization="Bearer write")

        write("PUT", "/dirs/d/files/f", b"x")
        write("PUT", "/dirs/e/files/g", b"x")
        write("PUT", "/dirs/d/files/p/meta", {"xref": "/dirs/e/files/g"})
        write("DELETE", "/dirs/d/files")
        assert [restore(f"{path}?asof=id3") for path in ("dirs/d/files/p", "dirs/d", "dirs/e", "dirs", "")] == [403] * 5
        assert restore("dirs/d/files/f?asof=id3") == 200


EXAMPLES = {"sqlite": 8, "postgresql": 2}


@pytest.mark.parametrize("kind", EXAMPLES)
@pytest.mark.generated
def test_any_moment_comes_back(request: pytest.FixtureRequest, kind: str) -> None:
    # FLAG-81: after any history, the export is that of the moment, except epochs and modifiedat; the log verifies
    url = request.getfixturevalue("postgres_url") if kind == "postgresql" else None

    @settings(max_examples=examples(EXAMPLES[kind]), deadline=None, suppress_health_check=list(HealthCheck))
    @given(histories(documents=True, most=15), st.integers(0, 15))
    def run(history: list[Step], moment: int) -> None:
        with store(url) as empty:
            asyncio.run(restored(empty, history, moment))

    run()


async def restored(url: str, history: list[Step], moment: int) -> None:
    moments: list[tuple[str, Any]] = []
    async with recording_registry(url) as registry:
        for step in history:
            answer = await registry.ask(as_request(step))
            if ID in answer.headers:
                moments.append((answer.headers[ID], await export(registry)))
        id, then = moments[moment % len(moments)]
        answer = await registry.ask(Request("POST", f"/-/restore/?asof={id}&include=model"))
        assert answer.status == 200, answer
        assert await export(registry) == then
        again = await registry.ask(Request("POST", f"/-/restore/?asof={id}&include=model"))
        assert ID not in again.headers
    found = Store(url)
    try:
        assert [*verify_log(found), *verify_row_hashes(found)] == []
    finally:
        found.close()


async def export(registry: Registry) -> Any:
    answer = await registry.send(Request("GET", "/export"))
    return settled(json.loads(answer.content))


def settled(value: Any) -> Any:
    """A value without the attributes that every write changes."""
    if isinstance(value, list):
        return [settled(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: settled(each) for name, each in value.items() if name not in ("epoch", "modifiedat")}
