"""Checks of hostile documents end within their limits, reach nothing, and block no other command.

SC-10, for every format: nothing is fetched or read because a document refers to it.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final

import httpx
import pytest

from annals.commands.documents.document_checker import CheckLimits, DocumentChecker
from annals.domain.decisions.changes.documents import digest
from annals.domain.decisions.checks.document_checks import CompatibilityCheck, DocumentCheck, FormatCheck
from tests.commands.documents.hostile import (
    ANY,
    LARGE,
    SLOW_PATTERN,
    SLOW_TEXT,
    TIMED_OUT_TEXT,
    XSD,
    HostileDocument,
    Trap,
    hostile,
    names,
)
from tests.support.serving import Served, serving

#: The time limit for one document. A check without a limit would run for years, until the test itself times out.
SECONDS: Final = 2
MEGABYTE: Final = 1 << 20

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read where Linux tells")


@pytest.fixture(scope="module")
def listener() -> Iterator[socket.socket]:
    """A server that must get no connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        yield listening


@pytest.fixture(scope="module")
def table(listener: socket.socket, tmp_path_factory: pytest.TempPathFactory) -> dict[str, HostileDocument]:
    pipe = tmp_path_factory.mktemp("trap") / "pipe"
    os.mkfifo(pipe)
    trap = Trap(f"http://127.0.0.1:{listener.getsockname()[1]}/x", pipe)
    return {str(one).replace(str(trap.pipe), "/pipe"): one for one in hostile(trap)}


@pytest.fixture(scope="module")
def checker() -> DocumentChecker:
    return DocumentChecker(CheckLimits(seconds=SECONDS, memory=1024 * MEGABYTE))


@pytest.fixture(scope="module")
def patient_checker() -> DocumentChecker:
    """For documents that another limit refuses, which may take longer than two seconds on a busy machine."""
    return DocumentChecker(CheckLimits(seconds=60, memory=1024 * MEGABYTE))


@pytest.mark.parametrize("name", names())
def test_a_hostile_document_ends_in_time_and_reaches_nothing(
    name: str,
    table: dict[str, HostileDocument],
    checker: DocumentChecker,
    patient_checker: DocumentChecker,
    listener: socket.socket,
    tmp_path: Path,
) -> None:
    one, content = table[name], table[name].content()
    documents = {digest(content) or "": content}
    format_check = FormatCheck(one.format, digest(content))
    document_checks: list[DocumentCheck] = [format_check]
    if one.older is not None:
        documents[digest(one.older) or ""] = one.older
        older = FormatCheck(one.format, digest(one.older))
        document_checks += [
            CompatibilityCheck(format_check, older),
            CompatibilityCheck(older, format_check, newer="writer"),
        ]
    by_other_limit = one.says not in ("", ANY, TIMED_OUT_TEXT)
    answers = (patient_checker if by_other_limit else checker).check(document_checks, documents.__getitem__)
    texts = [found.text for found in answers[format_check]]
    assert all(len(text) <= 1000 and text.isprintable() for text in texts), texts
    if one.says != ANY:
        assert one.says in " ".join(texts) if one.says else texts == [], texts
    # If the check opened the pipe or connected to the cloud's address, its result could only be LATE.
    with pytest.raises(BlockingIOError):
        listener.accept()
    assert not Path("owned").exists() and not (tmp_path / "owned").exists()


def bombs(count: int) -> dict[str, bytes]:
    """Documents that take years each to check, by their hashes."""
    simple = f'<xs:simpleType name="s"><xs:restriction base="xs:string"><xs:pattern value="{SLOW_PATTERN[1:-1]}"/>'
    rest = f'</xs:restriction></xs:simpleType><xs:element name="e" type="t:s" default="{SLOW_TEXT}"/></xs:schema>'
    made = [f"{XSD}<!--{number}-->{simple}{rest}".encode() for number in range(count)]
    return {str(digest(content)): content for content in made}


def test_a_request_of_many_bombs_is_given_up() -> None:
    # a request is given up after `max_losses` checks exceed a limit; waiting for all of them would take too long
    documents = bombs(400)
    document_checks = [FormatCheck("xsd/1.1", name) for name in documents]
    answers = DocumentChecker(CheckLimits(seconds=1, max_losses=3)).check(document_checks, documents.__getitem__)
    assert all(TIMED_OUT_TEXT in answers[document_check][0].text for document_check in document_checks)


def test_what_is_lost_is_compared_with_nothing() -> None:
    # ENT-112: a document costs its time limit once, not once for each comparison, which would take too long for a test
    [(bomb, content)] = bombs(1).items()
    older = {str(digest(text)): text for text in (f"{XSD}<!--{n}--></xs:schema>".encode() for n in range(200))}
    format_check = FormatCheck("xsd/1.1", bomb)
    comparisons: list[DocumentCheck] = [
        CompatibilityCheck(format_check, FormatCheck("xsd/1.1", name)) for name in older
    ]
    checker = DocumentChecker(CheckLimits(seconds=2, max_losses=300))
    answers = checker.check([*comparisons, format_check], {**older, bomb: content}.__getitem__)
    assert all(TIMED_OUT_TEXT in answers[document_check][0].text for document_check in (format_check, *comparisons))


#: For each format, a document whose check takes its whole time limit, or as long as the format allows.
SLOW: Final = {
    "Avro/1.11": "avro/1.11: many fields",
    "JsonSchema/draft/2020-12": "jsonschema/draft/2020-12: large",
    "JsonStructure/draft-04": "jsonstructure/draft-04: large",
    "Protobuf/3": "protobuf/3: a long circle",
    "XSD/1.1": "xsd/1.1: a pattern with a default value",
    "GraphQL/October2021": "graphql/october2021: a chain of interfaces",
    "OpenAPI/3.1": "openapi/3.1: a pattern with a default",
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    (folder / ".env").write_text(f"ANNALS_CHECK_SECONDS={SECONDS}\nANNALS_CHECK_MEMORY=1024\n")
    with serving(f"sqlite:///{folder / 'annals.db'}", folder) as served:
        put(served, "Avro/1.11", b'"int"', "first").raise_for_status()
        yield served


def put(served: Served, format: str, content: bytes, name: str) -> httpx.Response:
    """Writes a document; the body of the request is its bytes."""
    url, headers = f"{served.url}/schemagroups/g/schemas/{name}", {"xRegistry-format": format}
    return httpx.put(url, content=content, headers=headers, timeout=60)


@pytest.mark.long
@pytest.mark.parametrize("format", SLOW)
def test_hostile_documents_do_not_block_other_requests(
    format: str, served: Served, table: dict[str, HostileDocument]
) -> None:
    content = table[SLOW[format]].content()
    writes = 0
    with ThreadPoolExecutor(1) as client, httpx.Client(base_url=served.url, timeout=60) as other:
        slow = client.submit(put, served, format, content, re.sub(r"\W", "", format))
        time.sleep(0.2)
        while not slow.done():
            other.get("/-/livez").raise_for_status()
            written = other.put(f"/messagegroups/m{writes}", json={"name": f"{format} {writes}"})
            assert written.status_code in (200, 201)
            writes += not slow.done()
    answer = slow.result()
    # A check that takes almost its whole time limit may just succeed.
    assert answer.status_code == 201 or ("format_violation" in answer.json()["type"] and answer.json()["detail"])
    assert writes > 2


def test_checks_without_writing_leave_threads_for_others(served: Served) -> None:
    # reads, the readiness probe and a write of a small document respond while many requests to `/-/check` run
    documents = list(bombs(12).values())

    def check(content: bytes) -> httpx.Response:
        return httpx.post(f"{served.url}/-/check/schemagroups/g/schemas/c?format=XSD/1.1", content=content, timeout=250)

    with ThreadPoolExecutor(len(documents)) as clients, httpx.Client(base_url=served.url, timeout=60) as other:
        running: list[Future[httpx.Response]] = [clients.submit(check, content) for content in documents]
        time.sleep(0.5)
        for path in ("/-/readyz", "/-/docs", "/-/metrics", "/?inline=*"):
            other.get(path).raise_for_status()
        put(served, "Avro/1.11", b'"long"', "small").raise_for_status()
        assert not all(one.done() for one in running)
        assert {one.result().json()["valid"] for one in running} == {False}


@pytest.mark.long
@pytest.mark.parametrize("format", SLOW)
def test_a_large_document_costs_the_server_little_memory(
    format: str, served: Served, table: dict[str, HostileDocument]
) -> None:
    large = next(one for name, one in table.items() if format.lower() in name and name.endswith(": large"))
    content, pid = large.content(), served.process.pid
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    before = memory(pid, "VmRSS")
    assert put(served, format, content, "large").status_code == 400
    assert memory(pid, "VmHWM") - before < 4 * LARGE


def memory(pid: int, name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) * 1024
