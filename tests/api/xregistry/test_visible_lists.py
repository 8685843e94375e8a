"""A caller with roles at some places sees a registry that has only the Groups at these places."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any

import httpx
import pytest

from annals.domain.access.roles import Role
from tests.support.registries.in_process import BASE, MODEL, Api, create, serving

PLACES: dict[str, list[str]] = {
    "one Group": ["/dirs/team-a"],
    "Groups that begin with a text": ["/dirs/team-*"],
    "Groups that end with a text": ["/dirs/*-a"],
    "Groups with a text inside": ["/dirs/t*m-*"],
    "all collections": ["/*/team-a"],
    "all Groups of a collection": ["/boxes/*"],
    "several places, in any letter case": ["/DIRS/Team-A", "/boxes/b*", "/dirs/x*y", "/dirs/team-*"],
    "a Group that does not exist": ["/dirs/none"],
    "collections whose names are like a path of the server": ["/e*/*", "/m*/*"],
}
GROUPS = [
    f"/{plural}/{id}"
    for plural in ("dirs", "boxes")
    for id in ("Team-A", "team-b", "team-ab", "other", "b1", "x_y", "x-y")
]
TWO_KINDS: dict[str, Any] = {
    "groups": {**MODEL["groups"], "boxes": {"singular": "box", "resources": MODEL["groups"]["dirs"]["resources"]}}
}
PATHS = [
    "/",
    "/?inline=*",
    "/?inline=dirs.files",
    "/export",
    "/export/",
    "/dirs/",
    "/dirs",
    "/boxes?inline=*",
    "/dirs?filter=name=n1",
    "/dirs?filter=name!=n1",
    "/dirs?filter=files.name=n2",
    "/dirs?filter=files.size>=3",
    "/dirs?filter=dirid=*a*",
    "/?filter=boxes.files.versions.name=n*&inline=*",
    "/?filter=dirs.files.size=4,boxes.name=n1&inline=*",
    "/dirs?sort=name",
    "/dirs?sort=name=desc",
    "/dirs?sort=description",
    "/boxes?inline=files&filter=files.name=null",
    "/dirs?limit=2",
    "/dirs?limit=1&sort=description",
    "/boxes?limit=2&filter=name=n*&sort=name=desc",
]
#: Attributes of the registry that reveal changes of any Group.
MASKED = re.compile(r'("epoch":|"modifiedat":)("[^"]*"|\d+)')


def fill(api: Api, groups: list[str]) -> None:
    """Groups with files; some of their attributes are the same in each registry."""
    for number, group in enumerate(GROUPS):
        if group not in groups:
            continue
        files = {f"f{each}": {"name": f"n{(number + each) % 3}", "size": number + each} for each in range(2)}
        body = {"name": f"n{number % 2}", **({"description": f"d{number}"} if number % 3 else {}), "files": files}
        api.done("PUT", f"{group}?inline=*", body, authorization="Bearer root")


def visible(places: list[str]) -> list[str]:
    return [group for group in GROUPS if any(fnmatchcase(group.lower(), place.lower()) for place in places)]


@contextmanager
def registry(url: str, groups: list[str]) -> Iterator[Api]:
    create(url, TWO_KINDS)
    tokens: dict[str, Any] = {"root": {"name": "root", "role": "writer"}}
    for number, (name, places) in enumerate(PLACES.items()):
        tokens[token(name)] = {"name": f"c{number}", "groups": dict.fromkeys(places, Role.READER)}
    with serving(url, tokens=json.dumps(tokens)) as api:
        fill(api, groups)
        yield api


def token(name: str) -> str:
    return re.sub(r"\W", "-", name)


def pages(api: Api, path: str, token: str) -> Iterator[httpx.Response]:
    """The response to a request and those to its next pages."""
    answer = api.send("GET", path, authorization=f"Bearer {token}")
    yield answer
    while (link := answer.links.get("next")) is not None:
        answer = api.send("GET", link["url"].removeprefix(BASE), authorization=f"Bearer {token}")
        yield answer


@pytest.fixture(scope="module")
def full(shared_store_url: str) -> Iterator[Api]:
    with registry(shared_store_url, GROUPS) as api:
        yield api


@pytest.mark.parametrize("name", PLACES)
def test_lists_are_those_of_a_registry_without_the_other_groups(full: Api, sqlite_url: str, name: str) -> None:
    # ACC-60, ACC-71, ACC-72: the same members, counts, matches and pages, now and in the past
    with registry(sqlite_url, visible(PLACES[name])) as part:
        for path in PATHS:
            for asof in (False, True):
                expected = contents(part, path, "root", asof=asof)
                # If no Group matches a filter, the registry itself does not match.
                assert {status for status, _ in expected} <= ({200, 404} if path.startswith("/?filter") else {200})
                assert contents(full, path, token(name), asof=asof) == expected, (path, asof)


def contents(api: Api, path: str, token: str, *, asof: bool) -> list[tuple[int, str]]:
    """The statuses and bodies of a request and of its next pages, without MASKED."""
    position = api.send("GET", "/", authorization="Bearer root").headers["annals-position"]
    moment = f"{'&' if '?' in path else '?'}asof={position}" if asof else ""
    answers = pages(api, path + moment, token)
    return [(answer.status_code, MASKED.sub("", answer.text.replace(f"asof={position}", ""))) for answer in answers]
