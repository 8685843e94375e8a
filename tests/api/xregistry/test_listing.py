"""Collections over HTTP, sorted and in pages, by following the links between pages."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from itertools import pairwise

import httpx
import pytest

from annals.projections.entities.filters.pages import MAX_SORTED
from tests.support.registries.in_process import BASE, Api, create, serving

NAMES = {"d1": "b", "D2": "A", "d3": None, "d4": "a", "d5": "C", "d6": None, "d7": "b"}


@pytest.fixture
def api(store_url: str) -> Iterator[Api]:
    """Groups with few names, on each database in turn."""
    create(store_url)
    with serving(store_url) as served:
        served.done("POST", "/dirs", {id: {"name": name, "files": {"f": {}}} for id, name in NAMES.items()})
        yield served


def links(answer: httpx.Response) -> dict[str, str]:
    """The links to other pages by relation; all of them have the same count."""
    found = re.findall(rf"<{BASE}([^>]*)>;rel=(\w+);count=(\d+)", answer.headers["link"])
    assert len({count for _, _, count in found}) <= 1
    return {rel: path for path, rel, _ in found}


def ids(answer: httpx.Response) -> list[str]:
    return list(answer.json())


def walk(api: Api, path: str, rel: str = "next") -> list[list[str]]:
    """The ids of each page, from the page of a path on."""
    pages: list[list[str]] = []
    following: str | None = path
    while following:
        answer = api.done("GET", following)
        pages.append(ids(answer))
        following = links(answer).get(rel)
    return pages


@pytest.mark.parametrize(
    ("query", "order"),
    [
        ("", ["d1", "D2", "d3", "d4", "d5", "d6", "d7"]),  # FLAG-52: ids without regard to case
        ("sort=name", ["d3", "d6", "D2", "d4", "d1", "d7", "d5"]),  # FLAG-51: missing values lowest, then by id
        ("sort=name=asc", ["d3", "d6", "D2", "d4", "d1", "d7", "d5"]),
        ("sort=name=desc", ["d5", "d7", "d1", "d4", "D2", "d6", "d3"]),  # FLAG-51: ids in the same direction
        ("sort=dirid=desc", ["d7", "d6", "d5", "d4", "d3", "D2", "d1"]),
        ("sort=xid", ["d1", "D2", "d3", "d4", "d5", "d6", "d7"]),
        ("sort=name&filter=name!=b", ["d3", "d6", "D2", "d4", "d5"]),
    ],
)
def test_pages_have_the_order_of_the_whole(api: Api, query: str, order: list[str]) -> None:
    # PAG-4, PAG-6, P-11: pages, forwards and backwards, add up to the whole collection
    whole = api.done("GET", f"/dirs?{query}&inline=files")
    assert ids(whole) == order
    assert all(list(each["files"]) == ["f"] for each in whole.json().values())
    pages = walk(api, f"/dirs?{query}&inline=files&limit=2")
    assert [id for page in pages for id in page] == order
    assert [len(page) for page in pages[:-1]] == [2] * (len(pages) - 1)
    assert walk(api, links(api.done("GET", f"/dirs?{query}&limit=2"))["last"], "prev")[::-1] == pages


#: Numbers in ascending order; several of them are the same double.
NUMBERS = (
    *("-9007199254740993", "-9007199254740992", "-1e-400", "1", "1.00000000000000000001", "1.00000000000000000002"),
    *(
        "9007199254740992",
        "9007199254740993",
        "123456789012345678901234567890",
        "123456789012345678901234567891",
        "1e400",
    ),
)


@pytest.mark.parametrize("few", [MAX_SORTED, -1])
@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_numbers_sort_by_all_of_their_digits(
    store_url: str, monkeypatch: pytest.MonkeyPatch, few: int, direction: str
) -> None:
    # FLAG-13, FLAG-51: in a whole collection, in pages sorted from rows and by the index, and as of a past moment
    monkeypatch.setattr("annals.projections.entities.filters.pages.MAX_SORTED", few)
    create(store_url, {"groups": {"boxes": {"singular": "box", "attributes": {"*": {"type": "decimal"}}}}})
    order = [f"b{index * 7 % 11}" for index in range(11)]
    members = dict(sorted(zip(order, NUMBERS, strict=True)))
    text = ",".join(f'"{id}":{{"size":{number}}}' for id, number in members.items())
    wanted, path = order if direction == "asc" else order[::-1], f"/boxes?sort=size={direction}"
    with serving(store_url) as api:
        written = api.done("POST", "/boxes", f"{{{text}}}".encode())
        assert ids(api.done("GET", path)) == wanted
        pages = walk(api, f"{path}&limit=2")
        assert [id for page in pages for id in page] == wanted
        assert walk(api, links(api.done("GET", f"{path}&limit=2"))["last"], "prev")[::-1] == pages
        api.done("PATCH", "/boxes", {id: {"size": 0} for id in order})
        assert ids(api.done("GET", f"{path}&asof={written.headers['xregistry-xregcorrelationid']}")) == wanted


def test_links_of_pages(api: Api) -> None:
    # PAG-4, PAG-5: the first page has no prev, the last no next; the count is the same on all
    first = api.done("GET", "/dirs?limit=3")
    assert set(links(first)) == {"next", "first", "last"}
    assert ";count=7" in first.headers["link"]
    middle = api.done("GET", links(first)["next"])
    assert set(links(middle)) == {"next", "prev", "first", "last"}
    last = api.done("GET", links(first)["last"])
    assert ids(last) == ["d7"] and set(links(last)) == {"prev", "first", "last"}
    assert ids(api.done("GET", links(middle)["prev"])) == ids(api.done("GET", links(last)["first"])) == ids(first)
    assert set(links(api.done("GET", "/dirs?limit=7"))) == {"first"}


def test_the_root_link_stays(api: Api) -> None:
    # PAG-9, HTTP-5: each link is a header of its own
    found = api.done("GET", "/dirs?limit=3").headers.get_list("link")
    assert f"<{BASE}>;rel=xregistry-root" in found and len(found) == 4


@pytest.mark.parametrize("query", ["", "sort=name&", "filter=name&", "sort=name=desc&filter=files.fileid=f&"])
def test_pages_agree_while_others_write(api: Api, query: str) -> None:
    # PAG-7: what is written between two pages neither adds, drops nor repeats a member of the set
    whole = walk(api, f"/dirs?{query}limit=2")
    answer = api.done("GET", f"/dirs?{query}limit=2")
    pages = [ids(answer)]
    writes = iter(
        [
            ("DELETE", "/dirs/d1", None),
            ("PUT", "/dirs/d0", {"name": "b", "files": {"f": {}}}),
            ("POST", "/dirs", {"d7": {"name": "0"}, "d9": {"name": "zz"}, "d5": {"name": None}}),
        ]
    )
    while following := links(answer).get("next"):
        if write := next(writes, None):
            api.done(*write)
        answer = api.done("GET", following)
        pages.append(ids(answer))
    assert pages == whole
    assert "d0" in ids(api.done("GET", "/dirs"))


def test_pages_go_on_after_the_owner_was_deleted(api: Api) -> None:
    # PAG-7: all pages are of the position of the first
    api.done("PUT", "/dirs/d1", {"files": {id: {} for id in "abc"}})
    first = api.done("GET", "/dirs/d1/files?limit=2")
    api.done("DELETE", "/dirs/d1")
    assert ids(first) + ids(api.done("GET", links(first)["next"])) == ["a", "b", "c", "f"]
    assert api.send("GET", "/dirs/d1/files?limit=2").status_code == 404
    assert api.send("GET", links(first)["next"].replace("limit=2", "sort=epoch&limit=2")).status_code == 400


def _add_types_and_attributes(api: Api) -> None:
    model = api.get("/modelsource")
    level = {"name": "level", "type": "integer", "default": 5, "required": True}
    model["groups"]["dirs"].setdefault("attributes", {})["level"] = level
    model["groups"]["dirs"]["resources"]["extras"] = {"singular": "extra"}
    api.done("PUT", "/modelsource", model)


def _remove_the_type(api: Api) -> None:
    api.done("DELETE", "/dirs")
    api.done("PUT", "/modelsource", {"groups": {}})


def _switch_pages_off(api: Api) -> None:
    api.done("PATCH", "/capabilities", {"pagination": False})


@pytest.mark.parametrize(
    "change",
    [
        _add_types_and_attributes,
        _remove_the_type,
        _switch_pages_off,
    ],
    ids=["new types and attributes", "no such type", "no pagination"],
)
@pytest.mark.parametrize("query", ["limit=2", "sort=name&limit=2", "filter=name&limit=2", "inline=files&limit=2"])
def test_pages_have_the_model_and_capabilities_of_the_first(
    api: Api, query: str, change: Callable[[Api], object]
) -> None:
    # PAG-7: a list that is read page by page shows one state, which its definitions belong to
    page = links(api.done("GET", f"/dirs?{query}"))["next"]
    before = api.done("GET", page)
    change(api)
    after = api.done("GET", page)
    assert after.content == before.content
    assert links(after) == links(before)
    assert after.headers["annals-position"] == api.done("GET", "/").headers["annals-position"]
    assert api.done("GET", links(after)["next"]).json()


def test_a_cursor_says_nothing_where_there_are_no_pages(api: Api) -> None:
    # PAG-6: neither about entities of a type that is newer, nor about its collection
    cursor = links(api.done("GET", "/dirs?limit=2"))["next"].rpartition("cursor=")[2]
    model = api.get("/modelsource")
    model["groups"]["extras"] = {"singular": "extra"}
    api.done("PUT", "/modelsource", model)
    created = api.done("PUT", "/extras/e", {}).json()
    assert api.get(f"/extras/e?cursor={cursor}") == created
    assert "did not make it" in api.send("GET", f"/extras?cursor={cursor}").text
    assert api.get(f"/dirs/d1?cursor={cursor}") == api.get("/dirs/d1")


def test_a_cursor_fits_its_request_only(api: Api) -> None:
    # PAG-6: a cursor is refused with another sort or path; another limit is accepted
    following = links(api.done("GET", "/dirs?sort=name&limit=2"))["next"]
    for changed in (following.replace("sort=name", "sort=epoch"), following.replace("/dirs?", "/dirs/d1/files?")):
        assert api.send("GET", changed).status_code == 400
    assert api.send("GET", following.replace("limit=2", "limit=3")).status_code == 200
    cursors = [following, links(api.done("GET", following))["next"]]
    assert all(one != other for one, other in pairwise(cursors))


def test_a_page_of_versions_stays_as_it_was_when_an_xref_changes(api: Api) -> None:
    # PAG-7, ENT-133: what an xref shows, and what a Resource had before it got one
    versions = {name: {f"v{n}": {"name": name} for n in range(4)} for name in ("t", "own")}
    api.done("POST", "/dirs/d1/files", {name: {"versions": versions[name]} for name in versions})
    api.done("PUT", "/dirs/d1/files/shown/meta", {"xref": "/dirs/d1/files/t"})
    pages = [links(api.done("GET", f"/dirs/d1/files/{name}/versions?limit=2"))["next"] for name in ("shown", "own")]
    before = [api.get(page) for page in pages]
    assert [[version["name"] for version in page.values()] for page in before] == [["t", "t"], ["own", "own"]]
    api.done("PATCH", "/dirs/d1/files/shown/meta", {"xref": None})
    api.done("PUT", "/dirs/d1/files/own/meta", {"xref": "/dirs/d1/files/t"})
    assert [api.get(page) for page in pages] == before


def test_a_cursor_that_nests_deeply(api: Api) -> None:
    # PAG-6
    for text in ("[" * 900, "[" * 5_000):
        assert api.send("GET", f"/dirs?cursor={urlsafe_b64encode(text.encode()).decode()}").status_code == 400


@pytest.mark.parametrize("key", ["!dirs!\0", "!dirs!\ud800", "!dirs!\n"])
def test_a_cursor_with_a_place_that_no_entity_has(api: Api, key: str) -> None:
    # PAG-6: PostgreSQL would refuse it, with an error that says nothing about the cursor
    before, _, text = links(api.done("GET", "/dirs?sort=name&limit=2"))["next"].partition("cursor=")
    cursor = json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    cursor[3][1] = key
    answer = api.send("GET", f"{before}cursor={urlsafe_b64encode(json.dumps(cursor).encode()).decode()}")
    assert answer.status_code == 400
    assert "this registry did not make it for this request" in answer.json()["args"]["error_detail"]


def test_links_of_pages_with_encoded_flags(api: Api) -> None:
    # PAG-4, PAG-6: the link states each flag once
    following = links(api.done("GET", "/dirs?%6Cimit=1&%73ort=name"))["next"]
    assert api.send("GET", following).status_code == 200


@pytest.mark.parametrize("beyond", [1, 1000, 2**61])
def test_a_cursor_of_a_position_that_is_yet_to_come(api: Api, beyond: int) -> None:
    # PAG-6, FLAG-80: it is from another registry, or from before a restore of this one; the error names the parameter
    following = links(api.done("GET", "/dirs?sort=name&limit=2"))["next"]
    before, _, text = following.partition("cursor=")
    check, position, *rest = json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))

    def cursor(position: int) -> str:
        return f"{before}cursor={urlsafe_b64encode(json.dumps([check, position, *rest]).encode()).decode()}"

    assert api.send("GET", cursor(position)).status_code == 200
    answer = api.send("GET", cursor(position + beyond))
    assert answer.status_code == 400
    detail = f'the parameter "cursor": it is of position {position + beyond}, but the log ends at position {position}'
    assert answer.json()["args"]["error_detail"] == detail


def test_a_page_limit_of_the_server(store_url: str) -> None:
    # PAG-2, PAG-3: the server may return less than requested, and pages without a request; entities stay whole
    create(store_url)
    with serving(store_url, pagelimit=2) as api:
        api.done("POST", "/dirs", {f"d{n}": {} for n in range(5)})
        assert [len(page) for page in walk(api, "/dirs")] == [2, 2, 1]
        assert [len(page) for page in walk(api, "/dirs?limit=4")] == [2, 2, 1]
        assert [len(page) for page in walk(api, "/dirs?limit=1")] == [1] * 5
        assert len(api.get("/?inline=dirs")["dirs"]) == 5


def test_as_many_expressions_as_databases_take(api: Api) -> None:
    # FLAG-10, FLAG-15: in each form, a filter of up to the limit of expressions works, and a longer one is refused
    for joint, most in ((",", 16), ("&filter=", 200)):
        for expression in ("name=n{}", "x{}!=1", "files.x{}<5"):
            filters = joint.join(expression.format(number) for number in range(most))
            assert api.send("GET", f"/dirs?filter={filters}").status_code == 200
            answer = api.send("GET", f"/dirs?filter={filters}{joint}name")
            assert (answer.status_code, answer.json()["type"].partition("#")[2]) == (400, "bad_filter")
