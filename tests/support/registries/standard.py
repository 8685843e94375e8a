"""Clients of servers of the standard API: their contents, read entity by entity and page by page."""

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

#: Seconds between two polls of the links in tests.
SHORT_INTERVAL: Final = 0.2
#: Attributes that each server sets for itself, and those that change with members of a Group or a Resource.
_OWN: Final = ("epoch", "self", "xid", "isdefault", "readonly", "metaurl", "versionsurl", "versionscount")
_TOUCHED: Final = ("modifiedat", "defaultversionurl", "filesurl", "filescount", "notesurl", "notescount")

Json = dict[str, Any]


class IndependentServer:
    """A server of the standard API that shares no code with Annals."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = httpx.Client(base_url=url, timeout=60, trust_env=False)

    def request(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """The response to a request with a JSON body, or with none."""
        given = {} if body is None else {"json": body}
        return self._client.request(method, path, **given)

    def done(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of the response to a request, which must succeed; None without a body."""
        answer = self.request(method, path, body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def requests(self) -> list[str]:
        """The requests so far, such as `GET /dirs`."""
        found: list[str] = self.done("GET", "/requests")
        return found

    def say(self, path: str, body: Any = None) -> None:
        """Sets the response to a GET of a path: JSON or bytes as they are; None restores its own."""
        content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        assert self._client.post("/say", params={"path": path}, content=content).is_success

    def refuse(self, xid: str) -> None:
        """Makes it refuse writes of a Group or a Resource."""
        self._client.post("/refuse", content=xid)


@contextmanager
def independent_server(*flags: str) -> Iterator[IndependentServer]:
    """The server of `independent_server.py` in a separate process. flags: those it supports in addition to `epoch`."""
    command = [sys.executable, "-m", "tests.support.registries.independent_server", *flags]
    with subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert url, "the server did not start"
            yield IndependentServer(url)
        finally:
            process.kill()


def use_common_model(*registries: Registry) -> None:
    """Replaces the model of registries with the types of the independent server."""
    for registry in registries:
        registry.done("PUT", "/modelsource", MODEL)


def contents(server: Registry | IndependentServer) -> Json:
    """The contents of `dirs` of a server by xid: Groups, metas, Versions with documents; without server-set attributes.

    This takes many requests. If an entity is deleted between two of them, it starts from the beginning.
    """
    for attempts_left in reversed(range(5)):
        try:
            return _contents(server)
        except AssertionError:
            if not attempts_left:
                raise
    raise AssertionError


def _contents(server: Registry | IndependentServer) -> Json:
    found: Json = {}
    for id, group in _members(server, "/dirs"):
        xid = f"/dirs/{id}"
        found[xid] = _bare(group, *_TOUCHED)
        for plural in ("files", "notes"):
            for each, _ in _members(server, f"{xid}/{plural}"):
                found |= _resource(server, f"{xid}/{plural}/{each}")
    return found


def wait_until_equal_contents(one: Registry | IndependentServer, other: Registry | IndependentServer) -> None:
    """Waits until both have the same contents."""
    try:
        until(lambda: contents(one) == contents(other))
    except AssertionError:
        mine, theirs = contents(one), contents(other)
        found = {xid: (mine.get(xid), theirs.get(xid)) for xid in mine.keys() | theirs.keys()}
        raise AssertionError({xid: both for xid, both in found.items() if both[0] != both[1]}) from None


def check_logs_stop_growing(*registries: Registry) -> None:
    """Fails if logs grow although no client writes, while each link polls several times."""
    before = [registry.head()["position"] for registry in registries]
    for registry in registries:
        wait_for_polls(registry)
    assert [registry.head()["position"] for registry in registries] == before


def _looked_since(registry: Registry, id: str, last: float | None) -> bool:
    return bool(registry.status(id).get("lastcontact") != last)


def wait_for_polls(registry: Registry, times: int = 3) -> None:
    """Waits until each pulling link has finished a few polls that began after this call, and each push all there is."""
    for link in registry.done("GET", "/-/links"):
        if link["mode"] == "push":  # it makes contact only if there is something to push
            until(partial(_has_pushed_all, registry, link["id"]))
            continue
        for _ in range(times):
            last = registry.status(link["id"]).get("lastcontact")
            until(partial(_looked_since, registry, link["id"], last))


def _has_pushed_all(registry: Registry, id: str) -> bool:
    return bool(registry.status(id).get("position") == registry.head()["position"])


def _resource(server: Registry | IndependentServer, xid: str) -> Json:
    meta = server.done("GET", f"{xid}/meta")
    if "xref" in meta:
        return {xid: {"xref": meta["xref"]}}
    found = {xid: _bare(meta, *_TOUCHED)}
    for id, version in _members(server, f"{xid}/versions"):
        own = f"{xid}/versions/{id}"
        document = server.request("GET", own).content if "/files/" in xid and "fileurl" not in version else b""
        found[own] = {**_bare(version), "": document}
    return found


def _members(server: Registry | IndependentServer, path: str) -> Iterator[tuple[str, Json]]:
    while path:
        answer = server.request("GET", path)
        if answer.status_code == 404 and path == "/dirs":
            return  # the model does not have this type yet
        assert answer.is_success, answer.text
        yield from answer.json().items()
        path = answer.links.get("next", {}).get("url", "")


def _bare(entity: Json, *left: str) -> Json:
    return {name: value for name, value in entity.items() if name not in (*_OWN, *left)}
