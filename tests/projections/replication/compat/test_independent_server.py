"""Links to a Schema Registry 0.2 that is not Annals, and has only what that specification requires."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from tests.projections.replication.compat.clients import SR, Client, running_registries
from tests.projections.replication.compat.independent_server import BASE
from tests.support.polling import until
from tests.support.serving import ROOT, environment


@contextmanager
def plain() -> Iterator[httpx.Client]:
    """Runs such a server; yields a client of it."""
    command = [sys.executable, "-m", "tests.projections.replication.compat.independent_server"]
    with ExitStack() as stack:
        process = stack.enter_context(
            subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True)
        )
        stack.callback(process.kill)
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        yield stack.enter_context(httpx.Client(base_url=url, trust_env=False))


def root(server: httpx.Client) -> str:
    """The URL of a server, without a slash at the end."""
    return str(server.base_url).rstrip("/")


def link(registry: Client, server: httpx.Client, mode: str) -> None:
    """Links a registry to a plain server."""
    body = {"url": root(server) + BASE, "dialect": SR.dialect, "mode": mode}
    registry.registry.done("PUT", "/-/links/plain", {**body, "interval": 0.2})


def test_it_can_be_copied_from(tmp_path: Path) -> None:
    """LEG-901 to LEG-904, LEG-909, LEG-913: a pull only reads; the base URL is the authority of what has none there."""
    with running_registries(tmp_path, SR, "b") as (b,), plain() as server:
        base = root(server) + BASE
        schema = f"{BASE}/schemagroups/g%2Fh/schemas/s"
        server.put(f"{BASE}/schemagroups/g%2Fh", json={"format": "Words"}).raise_for_status()
        for content in (b"1", b"2"):
            server.post(schema, content=content, headers={"content-type": "Text/X"}).raise_for_status()
        server.post(f"{schema[:-1]}t?authority=urn:example:words&id=w3", content=b"3").raise_for_status()
        link(b, server, "pull")
        path = "/schemagroups/g%2Fh/schemas/s/versions/"
        until(lambda: len(b.contents("g%2Fh", "s")) == 2)
        found = [(each.uri, each.authority, each.content, each.contenttype) for each in b.versions("g%2Fh", "s")]
        assert found == [(f"{base}{path}{content}", base, content.encode(), "Text/X") for content in "12"]
        until(lambda: b.document_of("urn:example:words:w3") == b"3")
        server.delete(f"{schema}/versions/1")
        until(lambda: b.contents("g%2Fh", "s") == [b"2"])
        server.delete(f"{BASE}/schemagroups/g%2Fh")
        until(lambda: b.versions_by_id() == {})
        assert [each for each in server.get("/requests").json() if not each.startswith("GET ")] == [
            f"PUT {BASE}/schemagroups/g%2Fh",
            *[f"POST {schema}"] * 2,
            f"POST {schema[:-1]}t",
            f"DELETE {schema}/versions/1",
            f"DELETE {BASE}/schemagroups/g%2Fh",
        ]


def test_it_can_be_written_to(tmp_path: Path) -> None:
    """LEG-902, LEG-904, LEG-906, LEG-909: it gets every version once, with authority and URI, and every deletion."""
    with running_registries(tmp_path, SR, "a") as (a,), plain() as server:
        a.group("g")
        a.added("g", "s", b"1", b"2", description="described")
        link(a, server, "push")
        schema = f"{BASE}/schemagroups/g/schemas/s"
        until(lambda: server.get(f"{schema}/versions").json() == [1, 2])
        a.added("g", "s", b"3")
        until(lambda: server.get(f"{schema}/versions").json() == [1, 2, 3])
        for each in a.versions("g", "s"):
            answer = server.get(f"{BASE}/schema", params={"uri": each.uri})
            assert (answer.content, answer.headers["content-type"]) == (each.content, each.contenttype)
            assert (answer.headers["schema-id"], answer.headers["schema-authority"]) == (each.uri, a.url)
        a.registry.stop()
        a.registry.start()
        a.delete("g", "s", 2)
        until(lambda: server.get(f"{schema}/versions").json() == [1, 3])
        a.delete("g")
        until(lambda: server.get(f"{BASE}/schemagroups").json() == [])
        assert len([each for each in server.get("/requests").json() if each.startswith("POST ")]) == 3


def test_an_api_that_is_gone_takes_nothing_with_it(tmp_path: Path) -> None:
    """LEG-909: a link deletes no copy because the whole API of the other registry answers 404; it fails."""
    with running_registries(tmp_path, SR, "b") as (b,), plain() as server:
        server.put(f"{BASE}/schemagroups/g", json={"format": "Words"}).raise_for_status()
        server.post(f"{BASE}/schemagroups/g/schemas/s", content=b"1").raise_for_status()
        link(b, server, "pull")
        until(lambda: b.contents("g", "s") == [b"1"])
        server.post("/away", content="nowhere")
        until(lambda: b.registry.status("plain")["state"] == "failing")
        assert b.contents("g", "s") == [b"1"]


def test_redirects_to_other_hosts_are_refused(tmp_path: Path) -> None:
    """LEG-1108: a link does not follow a redirect to another host."""
    with running_registries(tmp_path, SR, "b") as (b,), plain() as server, plain() as other:
        server.post("/away", content=root(other))
        link(b, server, "pull")
        until(lambda: "307" in b.registry.status("plain").get("error", ""))
        assert other.get("/requests").json() == []


#: A path, a broken response of the other registry to it, and the subject of the conflict that the status reports.
BROKEN: list[tuple[str, Any, str]] = [
    ("/schemagroups/g/schemas/bad/versions", {"1": 2}, "/schemagroups/g/schemas/bad"),
    ("/schemagroups/g/schemas/bad/versions", ["1"], "/schemagroups/g/schemas/bad"),
    ("/schemagroups/g/schemas/bad/versions/1", "%FF", "/schemagroups/g/schemas/bad"),
    ("/schemagroups/g/schemas", ["bad", "good", 5], "/schemagroups/g/schemas/5"),
    ("/schemagroups/g/schemas", {}, "/schemagroups/g"),
    ("/schemagroups/g", [], "/schemagroups/g"),
    ("/schemagroups", ["g", "h", {}], "/schemagroups/{}"),
]


def test_what_is_broken_is_passed_over(tmp_path: Path) -> None:
    """LEG-907, LEG-913: the status reports what is broken and why; its copy stays, and all else is copied."""
    with running_registries(tmp_path, SR, "b") as (b,), plain() as server:
        for group in ("g", "h"):
            server.put(f"{BASE}/schemagroups/{group}", json={"format": "Words"}).raise_for_status()
        for id in ("bad", "good"):
            server.post(f"{BASE}/schemagroups/g/schemas/{id}", content=b"1").raise_for_status()
        link(b, server, "pull")
        until(lambda: b.contents("g", "bad") == b.contents("g", "good") == [b"1"])
        for number, (path, body, subject) in enumerate(BROKEN):
            server.post("/say", json={BASE + path: body}).raise_for_status()
            until(partial(_says, b, subject))
            server.post(f"{BASE}/schemagroups/h/schemas/s{number}", content=b"1").raise_for_status()
            until(partial(b.contents, "h", f"s{number}"))
            assert b.registry.status("plain")["state"] == "active"
            assert b.contents("g", "bad") == b.contents("g", "good") == [b"1"]
            server.post("/say", json={}).raise_for_status()
            until(lambda: "conflicts" not in b.registry.status("plain"))
        server.post(f"{BASE}/schemagroups/g/schemas/bad", content=b"2").raise_for_status()
        until(lambda: b.contents("g", "bad") == [b"1", b"2"])


def test_what_cannot_be_compared_is_passed_over(tmp_path: Path) -> None:
    """LEG-907: a push reports objects whose responses in the other registry are invalid, and writes all others."""
    with running_registries(tmp_path, SR, "a") as (a,), plain() as server:
        server.post("/say", json={f"{BASE}/schemagroups/g": []}).raise_for_status()
        for group in ("g", "h"):
            a.group(group)
            a.added(group, "s", b"1")
        link(a, server, "push")
        until(lambda: server.get(f"{BASE}/schemagroups/h/schemas/s/versions").is_success)
        until(partial(_says, a, "/schemagroups/g/schemas/s"))
        assert a.registry.status("plain")["state"] == "active"


def _says(registry: Client, subject: str) -> bool:
    return subject in {each["subject"] for each in registry.registry.status("plain").get("conflicts", ())}
