"""Bodies with very many values: other requests are answered during the write, and the index stays small."""

from __future__ import annotations

import asyncio
import threading
from time import perf_counter
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine, create_engine

from annals.domain.model import Model
from annals.domain.model.source.includes import MAX_OBJECTS
from tests.support.polling import until
from tests.support.registries.in_process import Api, create, serving

ATTRIBUTES = {"tags": {"type": "array", "item": {"type": "integer"}}, "*": {"type": "any"}}
MODEL = {"groups": {"dirs": {"singular": "dir", "attributes": ATTRIBUTES}}}
#: Values that only the attribute `*` allows.
EXTENSIONS: dict[str, Any] = {
    "integers": [*range(1_000_000)],
    "members": {f"k{number}": number for number in range(100_000)},
    "objects": [{"a": number, "b": "text"} for number in range(100_000)],
}
#: Far more than any request takes, because the machine may have other work.
SECONDS = 20


async def _read_during(api: Api, large: asyncio.Task[httpx.Response]) -> tuple[int, float]:
    """Reads until a large request is done; the number of reads, and the time of the slowest."""
    answered, slowest = 0, 0.0
    while not large.done():
        began = perf_counter()
        assert (await api.client.get("/dirs/other")).status_code == 200
        answered, slowest = answered + 1, max(slowest, perf_counter() - began)
        await asyncio.sleep(0.01)  # a read in this process may complete without a pause for other tasks
    return answered, slowest


def _crowded(api: Api, path: str, body: object) -> httpx.Response:
    """The response to a PUT, during which other requests read and write."""

    async def crowd() -> httpx.Response:
        began = perf_counter()
        large = asyncio.create_task(api.client.put(path, json=body))
        await asyncio.sleep(0)
        small = asyncio.create_task(api.client.patch("/dirs/other", json={"name": "n"}))
        answered, slowest = await _read_during(api, large)
        assert (await small).status_code == 200
        assert answered and slowest < SECONDS and perf_counter() - began < 2 * SECONDS
        return large.result()

    return api.runner.run(crowd())


def test_a_large_array_lets_others_go_on(store_url: str) -> None:
    # FLAG-10: a filter finds an array of any length, and the array has one row in the index
    create(store_url, MODEL)
    with serving(store_url) as api:
        api.done("PUT", "/dirs/other", {})
        for status in (201, 200):
            assert _crowded(api, "/dirs/large", {"tags": [*range(300_000)]}).status_code == status
        assert [*api.get("/dirs?filter=tags[299999]=299999")] == ["large"]
        engine = create_engine(store_url.replace("postgresql:", "postgresql+psycopg:"))
        until(lambda: _index_rows(engine) == 1)  # the index follows when no command waits
        engine.dispose()


def _index_rows(engine: Engine) -> int:
    with engine.connect() as connection:
        return int(connection.exec_driver_sql("SELECT count(*) FROM attribute WHERE id_key = 'large'").scalar_one())


@pytest.mark.parametrize("value", EXTENSIONS.values(), ids=list(EXTENSIONS))
def test_a_large_extension_lets_others_go_on(store_url: str, value: Any) -> None:
    # ENT-13, FLAG-10: other requests wait neither for the check of its size nor for the index of its parts
    create(store_url, MODEL)
    with serving(store_url) as api:
        api.done("PUT", "/dirs/other", {})
        for status in (201, 200):
            assert _crowded(api, "/dirs/large", {"wide": value}).status_code == status
        assert api.get("/dirs/large")["wide"] == value


def test_a_model_near_its_bounds_lets_others_go_on(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # MOD-90: other requests wait no longer than the compilation, which is not on the event loop
    threads = list[threading.Thread]()
    load = Model.load

    def loaded(*stored: Any) -> Model:
        threads.append(threading.current_thread())
        return load(*stored)

    create(store_url, MODEL)
    with serving(store_url) as api:
        api.done("PUT", "/dirs/other", {})
        monkeypatch.setattr(Model, "load", loaded)
        given = ATTRIBUTES | {f"a{number}": {"type": "string"} for number in range(MAX_OBJECTS - 1000)}
        source = {"groups": {"dirs": {"singular": "dir", "attributes": given}}}
        assert _crowded(api, "/modelsource", source).status_code == 200
        assert api.get("/modelsource") == source
        assert threads and threading.main_thread() not in threads


def test_a_model_of_very_many_attributes_is_refused(store_url: str) -> None:
    # MOD-94: other requests do not wait for a model that would take seconds to compile
    create(store_url, MODEL)
    with serving(store_url) as api:
        api.done("PUT", "/dirs/other", {})
        given = {f"a{number}": {"type": "string"} for number in range(100_000)}
        answer = _crowded(api, "/modelsource", {"groups": {"dirs": {"singular": "dir", "attributes": given}}})
        assert answer.status_code == 400
        problem = answer.json()
        assert problem["type"].endswith("#model_error")
        assert f"it has more than {MAX_OBJECTS} objects; define fewer types and attributes" in problem["title"]
        assert api.get("/modelsource") == MODEL
