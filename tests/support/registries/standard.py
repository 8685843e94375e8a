"""Servers of the standard API as tests see them: what they hold, read entity by entity and page by page."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import httpx

from tests.support.polling import until
from tests.support.registries.independent_server import MODEL
from tests.support.registries.restarted import Registry
from tests.support.serving import ROOT, environment

#: Seconds between two looks of the links in tests.
OFTEN: Final = 0.2
#: What each server says for itself, and what says when a Group or a meta was touched.
_OWN: Final = ("epoch", "self", "xid", "isdefault", "readonly", "metaurl", "versionsurl", "versionscount")
_TOUCHED: Final = ("modifiedat", "defaultversionurl", "filesurl", "filescount", "notesurl", "notescount")

Json = dict[str, Any]


class Other:
    """A server of the standard API that is no registry of ours."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = httpx.Client(base_url=url, timeout=60, trust_env=False)

    def request(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """What a request with a JSON body, or none, is answered with."""
        given = {} if body is None else {"json": body}
        return self._client.request(method, path, **given)

    def done(self, method: str, path: str, body: Any = None) -> Any:
        """What a request that succeeds is answered with, None for no body."""
        answer = self.request(method, path, body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def asked(self) -> list[str]:
        """The requests so far, as `GET /dirs`."""
        found: list[str] = self.done("GET", "/asked")
        return found

    def say(self, path: str, body: Any = None) -> None:
        """Has it answer a GET of a path with a body, JSON or bytes as they are; with its own again for None."""
        content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        assert self._client.post("/say", params={"path": path}, content=content).is_success

    def refuse(self, xid: str) -> None:
        """Has it refuse writes of a Group or a Resource."""
        self._client.post("/refuse", content=xid)


@contextmanager
def plain(*flags: str) -> Iterator[Other]:
    """The server of `independent_server.py` in a process of its own. flags: that it offers beside `epoch`."""
    command = [sys.executable, "-m", "tests.support.registries.independent_server", *flags]
    with subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert url, "the server did not start"
            yield Other(url)
        finally:
            process.kill()


def modelled(*registries: Registry) -> None:
    """Has registries of ours know the types of the plain server, and no others."""
    for registry in registries:
        registry.done("PUT", "/modelsource", MODEL)


def held(server: Registry | Other) -> Json:
    """What a server holds of `dirs`, by xid: Groups, metas, Versions with their documents; without what is its own."""
    found: Json = {}
    for id, group in _members(server, "/dirs"):
        xid = f"/dirs/{id}"
        found[xid] = _bare(group, *_TOUCHED)
        for plural in ("files", "notes"):
            for each, _ in _members(server, f"{xid}/{plural}"):
                found |= _resource(server, f"{xid}/{plural}/{each}")
    return found


def same(one: Registry | Other, other: Registry | Other) -> None:
    """Returns once both hold the same."""
    try:
        until(lambda: _equal(one, other), 30)
    except AssertionError:
        mine, theirs = held(one), held(other)
        found = {xid: (mine.get(xid), theirs.get(xid)) for xid in mine.keys() | theirs.keys()}
        raise AssertionError({xid: both for xid, both in found.items() if both[0] != both[1]}) from None


def at_rest(*registries: Registry) -> None:
    """Fails when logs go on growing although nobody writes: each link looks several times meanwhile."""
    before = [registry.head()["position"] for registry in registries]
    for registry in registries:
        looked_again(registry)
    assert [registry.head()["position"] for registry in registries] == before


def _looked_since(registry: Registry, id: str, last: float | None) -> bool:
    return bool(registry.status(id).get("lastcontact") != last)


def looked_again(registry: Registry, times: int = 3) -> None:
    """Returns once each of its links has ended some more looks than one that may have begun before."""
    for link in registry.done("GET", "/-/links"):
        for _ in range(times):
            last = registry.status(link["id"]).get("lastcontact")
            until(partial(_looked_since, registry, link["id"], last))


def _equal(one: Registry | Other, other: Registry | Other) -> bool:
    try:
        return held(one) == held(other)
    except AssertionError:  # something went away between two requests
        return False


def _resource(server: Registry | Other, xid: str) -> Json:
    meta = server.done("GET", f"{xid}/meta")
    if "xref" in meta:
        return {xid: {"xref": meta["xref"]}}
    found = {xid: _bare(meta, *_TOUCHED)}
    for id, version in _members(server, f"{xid}/versions"):
        own = f"{xid}/versions/{id}"
        document = server.request("GET", own).content if "/files/" in xid and "fileurl" not in version else b""
        found[own] = {**_bare(version), "": document}
    return found


def _members(server: Registry | Other, path: str) -> Iterator[tuple[str, Json]]:
    while path:
        answer = server.request("GET", path)
        if answer.status_code == 404 and path == "/dirs":
            return  # there is no such type yet
        assert answer.is_success, answer.text
        yield from answer.json().items()
        path = answer.links.get("next", {}).get("url", "")


def _bare(entity: Json, *left: str) -> Json:
    return {name: value for name, value in entity.items() if name not in (*_OWN, *left)}
