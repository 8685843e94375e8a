"""A read with `asof` returns the response that the registry gave at that moment (FLAG-80, FLAG-82)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.support.examples import examples
from tests.support.histories import POINTERS, RESOURCES, UNHURRIED, Step, as_request, database, histories
from tests.support.registries.requests import BASE, MIDNIGHT, Answer, Registry, Request, serving

__all__ = ["database"]

EXAMPLES: Final = {"sqlite": 10, "postgresql": 3}
#: Headers that responses about the past omit, or that have different values.
OTHER: Final = frozenset(("etag", "cache-control", "memento-datetime", "content-length", "annals-position"))
#: The parameter in links, as the first or a later one.
_ASOF: Final = re.compile(r"([?&])asof=[^\"&>;,\s]*(&?)")

_NEXT: Final = re.compile(r"<([^>]*)>;rel=next")
_ORIGINAL: Final = re.compile(r", <[^>]*>;rel=original")
#: The root without a query redirects browsers to the pages (UI-11).
_FOR_BROWSERS: Final = ", accept, sec-fetch-mode"
_CURSOR: Final = re.compile(r"cursor=[^&>]*")

_TREE: Final = (
    *("/", "/?inline=*,model,modelsource,capabilities", "/?doc&inline", "/?collections", "/export", "/model"),
    *("/modelsource", "/capabilities", "/capabilitiesoffered", "/dirs", "/dirs?inline=files.versions,files.file"),
    *("/dirs?inline&doc", "/dirs/a", "/dirs/A", "/dirs/a?inline", "/dirs/a?doc&collections", "/dirs/a/files"),
    *("/dirs/a/files?inline=versions,meta&binary", "/dirs/b/files?inline", "/dirs/a/notes?inline=meta"),
)
_ONE: Final = (
    *("", "$details", "$details?inline", "$details?doc", "$details?inline=*&doc&binary", "/meta", "/versions"),
    *("/versions?inline", "/versions/1.0.0", "/versions/1.0.0$details", "/versions/1$details", "?filter=stage=alpha"),
)
_FILTERS: Final = (
    *("/?inline&filter=dirs.files.stage=alpha", "/dirs?filter=files.versions.size>0&inline=files.versions"),
    *("/dirs?filter=files.name=x,files.versions.stage=alpha&filter=name=y", "/dirs/a?inline&filter=files.name!=x"),
    *("/dirs/a?filter=name=x,files.size=1&inline=files", "/dirs/a/files?filter=versions.name=x&inline=versions"),
    *("/dirs/a/files?filter=meta.xref", "/dirs/a/files?doc&inline&filter=meta.xref", "/dirs?filter=dirid=A"),
    *("/dirs/a/files/f1/versions?filter=size>=0", "/dirs/a/files/f1$details?inline&filter=versions.size<3"),
    *("/export?filter=dirs.files.name=null", "/dirs/b/files/f1/meta?filter=labels.a"),
)
_ORDERS: Final = (
    *("/dirs?sort=name", "/dirs?sort=dirid=desc", "/dirs/a/files?sort=size=desc&inline=versions"),
    *("/dirs/a/files?sort=labels.a", "/dirs/a/files/f1/versions?sort=modifiedat"),
    *("/dirs/a/files/f1/versions?sort=createdat=desc&filter=stage=alpha", "/dirs/b/files?filter=stage=alpha&sort=name"),
)
_PAGES: Final = (
    *("/dirs?limit=1", "/dirs/a/files?limit=1&inline=versions", "/dirs/a/files/f1/versions?limit=2&sort=name=desc"),
    *("/dirs/a/files/f1/versions?limit=1&filter=size<3", "/dirs?limit=1&filter=files.versions.size%3E0&inline"),
)
URLS: Final = (
    *_TREE,
    *(resource + path for resource in sorted({*RESOURCES, "/dirs/a/files/p1"}) for path in _ONE),
    *_FILTERS,
    *_ORDERS,
    *_PAGES,
)

_CAPABILITIES: Final[SearchStrategy[Step]] = st.builds(
    lambda more: Step("PATCH", "/capabilities", more),
    st.fixed_dictionaries(
        {},
        optional={
            "shortself": st.booleans(),
            "pagination": st.booleans(),
            "flags": st.sampled_from((["*"], ["doc", "inline", "sort"], ["filter"])),
        },
    ),
)
_SPELLING: Final = st.sampled_from(
    (Step("PUT", "/dirs/A", {"name": "x"}), Step("DELETE", "/dirs/A"), Step("PUT", "/dirs/A/files/F1", {"size": 1}))
)


@dataclass(frozen=True, slots=True)
class Moment:
    """The responses after an interaction. names: the values of `asof` for that moment."""

    names: tuple[str, ...]
    answers: Mapping[str, Answer]


@st.composite
def extended_histories(draw: DrawFn) -> list[Step]:
    """Histories with pointers, capabilities and other spellings among the writes."""
    found = draw(histories(documents=True, most=10))
    for step in draw(st.lists(st.one_of(POINTERS, POINTERS, _CAPABILITIES, _SPELLING), max_size=6)):
        found.insert(draw(st.integers(1, len(found))), step)
    return found


def test_as_of_a_moment_is_what_was_answered_then(database: tuple[str, Callable[[], Any]]) -> None:
    # FLAG-80, FLAG-82: body and headers equal those returned at that moment, regardless of later changes
    kind, empty = database

    @settings(max_examples=examples(EXAMPLES[kind]), **UNHURRIED)
    @given(extended_histories(), st.lists(st.sampled_from(URLS), min_size=30, max_size=30, unique=True))
    def run(history: list[Step], paths: list[str]) -> None:
        with empty() as url:
            asyncio.run(check_history(url, history, paths))

    run()


async def check_history(url: str, history: list[Step], paths: list[str]) -> None:
    async with serving(url) as registry:
        moments = [await read_moment(registry, paths)]
        for step in history:
            answer = await registry.ask(as_request(step))
            assert answer.status < 500, step
            if "xregistry-xregcorrelationid" in answer.headers:
                moments.append(await read_moment(registry, paths, answer.headers["xregistry-xregcorrelationid"]))
        for number, moment in enumerate(moments):
            asof = moment.names[number % len(moment.names)]
            for path, live in moment.answers.items():
                then = await read(registry, path, asof)
                assert comparable(then) == comparable(live), (path, asof)
                assert is_dated(then) == (then.status < 400)
                for answer in (live, then):  # a response that reads no state may have no position
                    assert answer.headers.get("annals-position", moment.names[0]) == moment.names[0]


async def read_moment(registry: Registry, paths: list[str], id: str | None = None) -> Moment:
    position = str(registry.stored_state()[0][0][0])
    time = (MIDNIGHT + timedelta(seconds=registry.moment.number)).isoformat()
    names = (position, id, time.replace("+00:00", "Z")) if id else (position,)
    return Moment(names, {path: await read(registry, path) for path in paths})


async def read(registry: Registry, path: str, asof: str | None = None) -> Answer:
    """The response to a GET. The content of further pages is appended."""
    first = path if asof is None else f"{path}{'&' if '?' in path else '?'}asof={asof}"
    answer = await registry.send(Request("GET", first))
    whole = answer
    while following := _NEXT.search(answer.headers.get("link", "")):
        answer = await registry.send(Request("GET", following[1].removeprefix(BASE)))
        whole = replace(whole, content=whole.content + b"\n" + answer.content)
    return whole


def comparable(answer: Answer) -> tuple[int, dict[str, str], str]:
    """A response without the parts that differ between a read with `asof` and one without, such as cursors."""
    link = _CURSOR.sub("cursor", _ORIGINAL.sub("", answer.headers["link"]))
    headers = {name: value for name, value in answer.headers.items() if name not in OTHER} | {"link": link}
    headers["vary"] = headers.get("vary", "").replace(_FOR_BROWSERS, "")
    return (
        answer.status,
        {name: _plain(value) for name, value in headers.items()},
        _plain(answer.content.decode("latin-1")),
    )


def is_dated(answer: Answer) -> bool:
    return "memento-datetime" in answer.headers and bool(_ORIGINAL.search(answer.headers["link"]))


def _plain(text: str) -> str:
    return _ASOF.sub(lambda found: found[1] if found[2] else "", text)
