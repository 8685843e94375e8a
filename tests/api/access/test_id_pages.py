"""Pages of `/-/keys` and `/-/grants`: ordered by id, with each member once, also during writes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import httpx
import pytest

from tests.api.access.conftest import AccessApi, access_api

COUNT: Final = 1001
#: The bodies of the POSTs that create the members of each list.
BODIES: Final[dict[str, Any]] = {
    "/-/keys": [{"name": f"k{number}", "role": "reader"} for number in range(COUNT)],
    "/-/grants": [
        {"id": f"{'Gg'[number % 2]}{number}", "subject": f"caller:c{number}", "role": "reader", "at": "/"}
        for number in range(COUNT)
    ],
}


@pytest.fixture(params=BODIES)
def path(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def api(store_url: str, path: str) -> Iterator[AccessApi]:
    """A registry whose list has one member more than the largest page."""
    with access_api(store_url) as api:
        headers = {"authorization": "Bearer admin"}

        async def make() -> None:
            answers = await asyncio.gather(
                *(api.client.post(path, json=each, headers=headers) for each in BODIES[path])
            )
            assert {answer.status_code for answer in answers} == {201}

        api.runner.run(make())
        yield api


def following(answer: httpx.Response) -> str | None:
    """The path of the next page; None on the last page."""
    return answer.links["next"]["url"].removeprefix("http://h") if "next" in answer.links else None


def ids(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [each["id"] for each in answer.json()]


def walk(api: AccessApi, url: str) -> list[list[str]]:
    """The ids on each page."""
    found: list[list[str]] = []
    next: str | None = url
    while next is not None:
        answer = api.send("GET", next)
        found.append(ids(answer))
        next = following(answer)
    return found


def test_a_thousand_members(api: AccessApi, path: str) -> None:
    """PAG-2, PAG-3, PAG-6, PAG-7, UI-18: the default page has 1,000 members; the links lead to each member once."""
    whole = walk(api, path)
    assert [len(page) for page in whole] == [1000, 1]
    everything = [id for page in whole for id in page]
    assert everything == sorted(everything, key=str.lower) and len(set(everything)) == COUNT
    page = api.send("GET", path.replace("/-/", "/ui/"))
    assert page.status_code == 200 and len(page.content) < 150_000 and page.text.count('<th scope="row">') == 50
    beyond_all = api.send("GET", f"{path.replace('/-/', '/ui/')}?after=zzzzzzzzzzzzzz").text
    assert "There are no more." in beyond_all and ">First</a>" in beyond_all
    small = walk(api, f"{path}?limit=300")
    assert [len(page) for page in small] == [300, 300, 300, 101]
    assert [id for page in small for id in page] == everything
    head = api.send("GET", "/-/log/head").json()["position"]
    first = api.send("GET", f"{path}?limit=400&asof={head}")
    assert first.links["original"]["url"] == f"http://h{path}?limit=400"
    # the deletion of the last member of a page does not shift the other members
    assert api.send("DELETE", f"{path}/{ids(first)[-1]}").status_code == 204
    now = walk(api, f"{path}?limit=400")
    assert [id for page in now for id in page] == [id for id in everything if id != ids(first)[-1]]
    beyond = api.send("GET", f"{path}?limit=400&after={ids(first)[-1]}")
    assert ids(beyond) == everything[400:800]
    past = walk(api, f"{path}?limit=400&asof={head}")
    assert [id for page in past for id in page] == everything


def test_filters_and_rights_hold_on_each_page(store_url: str) -> None:
    """ACC-64: a page has only the grants that its caller administers, and as many of them as requested."""
    with access_api(store_url) as api:
        for number in range(30):
            place = f"/schemagroups/{'pay' if number % 3 else 'other'}-{number}"
            body = {"id": f"g{number:02}", "subject": f"caller:c{number % 2}", "role": "reader", "at": place}
            assert api.send("POST", "/-/grants", body).status_code == 201
        wanted = [f"g{number:02}" for number in range(30) if number % 3]
        pages, url = list[list[str]](), "/-/grants?limit=7"
        while url:
            answer = api.send("GET", url, by="team")
            pages.append(ids(answer))
            url = following(answer) or ""
        assert [len(page) for page in pages] == [7, 7, 6] and [id for page in pages for id in page] == wanted
        answer = api.send("GET", "/-/grants?subject=caller:c1&limit=2", by="team")
        assert ids(answer) == ["g01", "g05"]
        assert following(answer) == "/-/grants?subject=caller:c1&limit=2&after=g05"


@pytest.mark.parametrize(
    ("query", "name"),
    [
        *((f"limit={value}", "limit") for value in ("0", "1001", "x", "1&limit=2")),
        *((f"after={value}", "after") for value in ("a/b", "", "%00")),
        ("offset=3", "offset"),
    ],
)
def test_bad_pages_are_refused(sqlite_url: str, query: str, name: str) -> None:
    """PAG-2: the error names the parameter."""
    with access_api(sqlite_url) as api:
        for path in BODIES:
            answer = api.send("GET", f"{path}?{query}")
            assert answer.status_code == 400 and f'the parameter \\"{name}\\"' in answer.text, answer.text
