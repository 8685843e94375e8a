"""The log position in responses, and reads that wait for a position."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any, Final

import httpx
import pytest

from annals.domain.access.roles import Caller, Role
from annals.projections.entities.view import View
from annals.projections.log.reader import MAX_POSITION
from tests.support.registries.in_process import Api, create, serving
from tests.support.serving import serving as real_server

HEADER: Final = "annals-position"
#: Reads of every surface that shows the registry's state, after the requests of `filled`.
READS: Final = (
    *("/", "/dirs", "/dirs/d", "/dirs/d/files", "/dirs/d/files/f", "/dirs/d/files/f$details", "/dirs/d/files/f/meta"),
    *("/dirs/d/files/f/versions", "/dirs?filter=name=first", "/dirs?sort=name", "/?inline=dirs", "/export", "/model"),
    *("/capabilities", "/capabilitiesoffered", "/dirs/none", "/dirs/d/files/none/versions"),
    *("/-/events", "/-/log", "/-/log/head", "/-/log/upstream", "/-/history/dirs/d", "/-/interactions", "/-/hash/"),
    *("/-/diff/?from=1", "/-/findings", "/-/links", "/-/links/none", "/-/openapi.json", "/-/docs"),
    *("/subscriptions", "/subscriptions/none", "/compat/schemaregistry/v0.2/schemagroups"),
)


@pytest.fixture
def filled(sqlite_url: str) -> Iterator[Api]:
    """A registry whose log ends at position 8, for an admin, who may see links."""
    create(sqlite_url)
    with serving(sqlite_url, ports={"caller": Caller("admin", Role.ADMIN)}) as api:
        api.done("PUT", "/dirs/d", {"name": "first"})
        assert api.done("PUT", "/dirs/d/files/f", b"one").headers[HEADER] == "8"
        yield api


def test_answers_name_the_position_of_their_state(filled: Api) -> None:
    for path in READS:
        answer = filled.send("GET", path)
        assert answer.status_code in (200, 404) and answer.headers.get(HEADER) == "8", (path, answer.text)
        assert filled.send("HEAD", path).headers[HEADER] == "8", path


def test_on_each_database_the_same(store_url: str) -> None:
    # PostgreSQL has other statements for look-ups and lists
    create(store_url)
    with serving(store_url) as api:
        api.done("PUT", "/dirs/d/files/f", b"one")
        for path in ("/dirs/d", "/dirs/none", "/dirs/d/files", "/dirs/d/files/f", "/dirs/d/files/f/versions"):
            assert api.send("GET", path).headers[HEADER] == "7", path

        async def together() -> list[Any]:
            return await asyncio.gather(*(api.client.get(path) for path in ("/dirs/d", "/dirs/none", "/dirs/d") * 3))

        assert {answer.headers[HEADER] for answer in api.runner.run(together())} == {"7"}


def test_the_past_and_unchanged_content_have_their_positions(filled: Api) -> None:
    for path in ("/dirs/d", "/dirs", "/?inline", "/dirs/none", "/-/log/head", "/subscriptions"):
        assert filled.send("GET", f"{path}{'&' if '?' in path else '?'}asof=5").headers[HEADER] == "5", path
    for path in ("/dirs/d", "/dirs", "/dirs/d/files"):
        tag = filled.send("GET", path).headers["etag"]
        unchanged = filled.send("GET", path, if_none_match=tag)
        assert (unchanged.status_code, unchanged.headers[HEADER]) == (304, "8"), path


def test_writes_name_the_position_that_they_made(filled: Api) -> None:
    assert filled.done("PATCH", "/dirs/d", {"name": "second"}).headers[HEADER] == "9"
    assert filled.done("POST", "/-/restore/dirs/d?asof=8").headers[HEADER] == "10"
    assert filled.done("PATCH", "/dirs/d?dryrun", {"name": "third"}).headers[HEADER] == "10"  # a dry run makes none
    assert filled.done("DELETE", "/dirs/d/files/f").headers[HEADER] == filled.send("GET", "/").headers[HEADER]


def test_other_answers_have_none(filled: Api) -> None:
    for path in ("/-/livez", "/-/version", "/-/metrics", "/.xregistry"):
        assert HEADER not in filled.send("GET", path).headers, path


REFUSED: Final = {
    **dict.fromkeys(
        ("waitfor=", "waitfor=-1", "waitfor=1.5", "waitfor=x", f"waitfor={MAX_POSITION + 1}", f"waitfor={'9' * 20}"),
        'the parameter "waitfor"',
    ),
    "waitfor=1&waitfor=2": "only once",
    "waitfor=1&timeout=6": "from 0 to 5",
    "waitfor=1&timeout=-1": "from 0 to 5",
    "waitfor=1&timeout=soon": "from 0 to 5",
}


def test_refused(filled: Api) -> None:
    for path in ("/dirs/d", "/-/log", "/subscriptions", "/compat/schemaregistry/v0.2/schemagroups"):
        for query, reason in REFUSED.items():
            answer = filled.send("GET", f"{path}?{query}")
            assert answer.status_code == 400 and reason in answer.json()["title"], (path, query)


def test_a_write_does_not_wait(filled: Api) -> None:
    answer = filled.send("PUT", "/dirs/x?waitfor=1", {})
    assert answer.status_code == 400 and "only GET and HEAD" in answer.text
    assert filled.send("GET", "/dirs/x").status_code == 404


def test_a_position_that_does_not_come(filled: Api) -> None:
    # the problem has the form of each surface, and the position that was reached
    for path in READS:
        begun = f"{path}{'&' if '?' in path else '?'}"
        answer = filled.send("GET", f"{begun}waitfor=9&timeout=0.02")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1"), path
        found = answer.json()
        assert found["type"].endswith("#position_not_reached")
        assert found["args"] == {"position": "9", "reached": "8"}
        assert filled.send("GET", f"{begun}waitfor=8").headers[HEADER] == "8", path


def test_the_setting_is_the_longest_wait(sqlite_url: str) -> None:
    create(sqlite_url)
    with serving(sqlite_url, waitfor_seconds=0.1) as api:
        began = time.monotonic()
        assert api.send("GET", "/?waitfor=1000").status_code == 503
        assert 0.1 <= time.monotonic() - began < 4, "the default is 5 seconds"
        assert "from 0 to 0.1" in api.send("GET", "/?waitfor=1&timeout=1").text


def test_an_answer_waits_for_a_commit(store_url: str) -> None:
    # a commit of this process, and one of another process, which is found by polling
    create(store_url)
    with serving(store_url) as reader, serving(store_url, ids="other") as writer:
        for name, other in (("own", reader), ("others", writer)):
            wanted = int(reader.send("GET", "/").headers[HEADER]) + 2

            def write(other: Api = other, name: str = name) -> None:
                time.sleep(0.2)
                other.done("PUT", f"/dirs/{name}", {})

            if other is writer:
                thread = Thread(target=write)
                thread.start()
                answer = reader.send("GET", f"/dirs/{name}?waitfor={wanted}")
                thread.join()
            else:
                answer = reader.runner.run(_read_and_write(reader, f"/dirs/{name}", wanted))
            assert (answer.status_code, int(answer.headers[HEADER])) == (200, wanted), answer.text
            tag = answer.headers["etag"]
            assert reader.send("GET", f"/dirs/{name}").headers["etag"] == tag  # the wait does not change the tag


async def _read_and_write(api: Api, path: str, wanted: int) -> Any:
    reading = asyncio.create_task(api.client.get(f"{path}?waitfor={wanted}"))
    await asyncio.sleep(0.2)
    assert not reading.done()
    await api.client.put(path, content=b"{}")
    return await reading


def test_with_asof_it_waits_first(filled: Api) -> None:
    assert filled.send("GET", "/dirs?asof=8&waitfor=8").headers[HEADER] == "8"
    assert "the log ends" in filled.send("GET", "/dirs?asof=9&waitfor=8").text
    assert filled.send("GET", "/dirs?asof=9&waitfor=9&timeout=0").status_code == 503


def test_links_of_pages_do_not_wait(filled: Api) -> None:
    for name in "abc":
        filled.done("PUT", f"/dirs/{name}", {})
    for path in ("/dirs?limit=2", "/-/log?limit=1", "/-/interactions?limit=1"):
        link = filled.send("GET", f"{path}&waitfor=8&timeout=1").headers["link"]
        assert "rel=next" in link and "waitfor" not in link and "timeout" not in link


def test_a_position_that_was_seen_costs_no_query(filled: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    assert filled.send("GET", "/dirs/d?waitfor=8").status_code == 200
    queried: list[View] = []
    position = View.position

    def counted(view: View) -> int:
        queried.append(view)
        return position(view)

    monkeypatch.setattr(View, "position", counted)
    assert filled.send("GET", "/dirs/d?waitfor=8").status_code == 200
    assert queried == []


def test_the_search_index_is_waited_for(sqlite_url: str, tmp_path: Path) -> None:
    # UI-100: the index follows the log; a search that waits for a write finds it, and names the position of the index
    with real_server(sqlite_url, tmp_path) as served, httpx.Client(base_url=served.url) as client:
        for number in range(5):
            written = client.put(f"/schemagroups/g{number}", json={"description": f"panda{number}"})
            found = client.get(f"/-/search?q=panda{number}&waitfor={written.headers[HEADER]}")
            assert found.json()["count"] == 1
            assert int(found.headers[HEADER]) == found.json()["position"] >= int(written.headers[HEADER])
