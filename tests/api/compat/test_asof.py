"""With `asof`, the two legacy APIs return what they returned at that moment, regardless of later changes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from annals.commands.store.log import Store
from annals.commands.verify.verify_log import verify_log, verify_row_hashes
from annals.domain.compat.legacy_apis import MESSAGECATALOG, SCHEMAREGISTRY
from annals.domain.model.builtin import default_source
from tests.support.registries.in_process import Api, create, serving

SR, MC = SCHEMAREGISTRY.base, MESSAGECATALOG.base
SCHEMAS, MESSAGES = f"{SR}/schemagroups/g/schemas", f"{MC}/messagecatalog/g/messagedefinitions"
#: All reads whose responses are compared: lists, groups, latest versions, versions by number and by URI.
READS = [
    *(
        f"{SR}/schemagroups",
        f"{SR}/schemagroups/g",
        SCHEMAS,
        f"{MC}/messagecatalog",
        f"{MC}/messagecatalog/g",
        MESSAGES,
    ),
    *(f"{each}/{id}{rest}" for each in (SCHEMAS, MESSAGES) for id in "ab" for rest in ("", "/versions")),
    *(f"{each}/a/versions/{number}" for each in (SCHEMAS, MESSAGES) for number in (1, 2, 3, 4)),
    f"{SR}/schema?uri=urn:s:1",
    f"{SR}/schema?uri=/schemagroups/g/schemas/b/versions/1",
    f"{MC}/messagedefinition?uri=urn:m:1",
]
#: Headers in which a response with `asof` differs from the earlier response.
ASOF_HEADERS = ("link", "memento-datetime", "cache-control", "vary")


def writes(chance: random.Random) -> Iterator[tuple[str, str, Any]]:
    """Writes by all three APIs to few ids, so that most writes change an existing object."""
    kinds: list[Callable[[str, bytes], tuple[str, str, Any]]] = [
        lambda id, text: ("POST", f"{SCHEMAS}/{id}?format=own", text),
        lambda id, text: ("POST", f"{SCHEMAS}/{id}?format=own&description=d{text.decode()}", text),
        lambda id, text: ("POST", f"{SCHEMAS}/{id}?format=own&id=urn:s:1", text),
        lambda id, text: ("POST", f"{MESSAGES}/{id}", text),
        lambda id, text: ("POST", f"{MESSAGES}/{id}?messagedescription=m{text.decode()}", text),
        lambda id, text: ("POST", f"{MESSAGES}/{id}?id=urn:m:1", text),
        lambda id, text: ("DELETE", f"{SCHEMAS}/{id}/versions/{int(text) % 4 + 1}", None),
        lambda id, text: ("DELETE", f"{MESSAGES}/{id}/versions/{int(text) % 4 + 1}", None),
        lambda id, text: ("DELETE", f"{MESSAGES}/{id}", None),
        lambda id, text: ("DELETE", f"/schemagroups/g/schemas/{id}/versions/{int(text) % 4 + 1}", None),
        lambda id, text: ("PUT", f"/schemagroups/g/schemas/{id}/versions/v{int(text) % 3}$details", {"format": "own"}),
        lambda id, text: ("PATCH", f"/messagegroups/g/messages/{id}", {"name": text.decode()}),
        lambda id, text: ("PUT", f"{SR}/schemagroups/g", {"description": text.decode(), "format": "own"}),
        lambda id, text: ("PUT", f"{MC}/messagecatalog/g", {"description": text.decode(), "format": "own"}),
        lambda id, text: ("DELETE", f"{SR}/schemagroups/g", None),
    ]
    weights = [6] * 6 + [3] * 4 + [2] * 4 + [1]
    for kind in chance.choices(kinds, weights, k=40):
        yield kind(chance.choice("aab"), b"%d" % chance.randrange(8))


def comparable_answer(api: Api, path: str, asof: str | None = None) -> tuple[int, bytes, dict[str, str]]:
    """Status, body and headers of a response, without the parts in which a response with `asof` differs."""
    url = path if asof is None else f"{path}{'&' if '?' in path else '?'}asof={asof}"
    answer = api.send("GET", url)
    ends = (f"?asof={asof}", f"&asof={asof}")
    headers = {name: value for name, value in answer.headers.items() if name not in ASOF_HEADERS}
    plain = {name: value.removesuffix(ends[0]).removesuffix(ends[1]) for name, value in headers.items()}
    if answer.status_code >= 400:
        return answer.status_code, b"", {}
    return answer.status_code, answer.content, plain


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_the_past_stays_as_it_was(store_url: str, seed: int) -> None:
    # LEG-1208, FLAG-80, FLAG-82, LEG-707: reads at each moment return the versions, numbers, URIs and groups of then
    create(store_url, default_source())
    with serving(store_url) as api:
        moments: dict[str, list[Any]] = {}
        api.done("PUT", f"{SR}/schemagroups/g", {"format": "own"})
        api.done("PUT", f"{MC}/messagecatalog/g", {"format": "own"})
        for method, path, body in writes(random.Random(seed)):
            answer = api.send(method, path, body)
            assert answer.status_code < 500, answer.text
            moment = answer.headers.get("xregistry-xregcorrelationid")
            if moment is not None:
                moments[moment] = [comparable_answer(api, read) for read in READS]
        assert len(moments) > 10
        for moment, then in moments.items():
            for read, wanted in zip(READS, then, strict=True):
                assert comparable_answer(api, read, moment) == wanted, (moment, read)
    with closing(Store(store_url)) as store:
        assert [*verify_log(store), *verify_row_hashes(store)] == []
