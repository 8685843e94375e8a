"""The processes that check documents: started on demand, ended with their client, replaced when they are lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Final

import httpx
import pytest

from annals.commands.documents.document_checker import CheckLimits, DocumentChecker
from annals.domain.decisions.changes.documents import digest
from annals.domain.decisions.checks.document_checks import FormatCheck
from tests.support.serving import Served, annals, environment, serving

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are found where Linux tells")

#: Long enough to see a process at work on a busy machine.
SECONDS: Final = 20
SMALL, GRAPHQL = ("Avro/1.11", b'"int"'), ("GraphQL/October2021", b"type Query { a: Int }")
#: A schema with a pattern that takes years to match the default value.
BOMB: Final = (
    b'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:simpleType name="s"><xs:restriction base="xs:string">'
    b'<xs:pattern value="(a+)+"/></xs:restriction></xs:simpleType><xs:element name="e" type="s" default="%s!"/>'
    b"</xs:schema>" % (b"a" * 60)
)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / ".env").write_text(f"ANNALS_CHECK_SECONDS={SECONDS}\n")
    with serving(f"sqlite:///{tmp_path / 'annals.db'}", tmp_path) as served:
        yield served


def put(url: str, format: str, content: bytes) -> httpx.Response:
    name = f"{url}/schemagroups/g/schemas/{format.partition('/')[0]}"
    return httpx.put(name, content=content, headers={"xRegistry-format": format}, timeout=60)


def kill(pids: list[int]) -> None:
    """Kills processes, and waits until none is alive."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    assert soon(lambda: not any(map(lives, pids)), 5)


#: The number of processes that one client needs; the search index may read fields of a document in a second one.
ONE: Final = (1, 2)


def check(url: str, content: bytes) -> httpx.Response:
    return httpx.post(f"{url}/-/check/schemagroups/g/schemas/x?format=XSD/1.0", content=content, timeout=60)


def children(pid: int) -> list[int]:
    """The live child processes of a process."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    found = [int(child) for task in tasks for child in task.read_text().split()]
    return [child for child in found if lives(child)]


def lives(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    return False


def soon(holds: Callable[[], bool], seconds: float) -> bool:
    """Whether a condition becomes true in time."""
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def busy(served: Served) -> int:
    """The process that BOMB keeps busy."""
    found: list[int] = []

    def works() -> bool:
        found[:] = [child for child in children(served.process.pid) if _seconds(child) > 0.7]
        return bool(found)

    assert soon(works, 60)
    return found[0]


def _seconds(pid: int) -> float:
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def test_there_is_none_before_it_is_needed(served: Served) -> None:
    # reads, writes and small documents of a cheap format need no process; no more processes are started than needed
    put(served.url, *SMALL).raise_for_status()
    httpx.patch(f"{served.url}/schemagroups/g/schemas/Avro/meta", json={"compatibility": "full"}).raise_for_status()
    wider = httpx.post(f"{served.url}/schemagroups/g/schemas/Avro$details", json={"format": SMALL[0], "schema": "long"})
    assert "compatibility_violation" in wider.text
    httpx.get(served.url).raise_for_status()
    assert children(served.process.pid) == []
    for number in range(4):
        put(served.url, GRAPHQL[0], GRAPHQL[1] + b" #%d" % number).raise_for_status()
    assert len(children(served.process.pid)) in ONE


@pytest.mark.parametrize("signal_", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "stopped"])
def test_none_outlives_the_server(served: Served, signal_: int) -> None:
    # also a process that is busy with an endless check, when no server is left to stop it
    put(served.url, *GRAPHQL).raise_for_status()
    with ThreadPoolExecutor(1) as client:
        client.submit(put, served.url, "XSD/1.0", BOMB)
        busy(served)
        mine = children(served.process.pid)
        served.process.send_signal(signal_)
        assert soon(lambda: not any(map(lives, mine)), SECONDS + 40)
        served.process.wait(60)


def test_a_server_that_stops_abandons_checks(tmp_path: Path) -> None:
    # ERR-8: however many endless checks there are, each client gets an error, and none of the documents is written
    database = f"sqlite:///{tmp_path / 'annals.db'}"
    bombs = [BOMB + b"<!-- %d -->" % number for number in range(40)]
    with ExitStack() as stack:
        with serving(database, tmp_path, ANNALS_CHECK_SECONDS="600") as served:
            put(served.url, *GRAPHQL).raise_for_status()
            clients = stack.enter_context(ThreadPoolExecutor(len(bombs)))
            futures = [clients.submit(put, served.url, "XSD/1.0", bomb) for bomb in bombs[:-12]]
            futures += [clients.submit(check, served.url, bomb) for bomb in bombs[-12:]]
            busy(served)
            served.process.send_signal(signal.SIGTERM)
            served.process.wait(60)
        errors = [
            (answer.status_code, answer.json()["type"].rpartition("#")[2]) for answer in (a.result() for a in futures)
        ]
        assert errors == [(503, "server_busy")] * len(bombs)
    with serving(database, tmp_path) as served:
        assert set(httpx.get(f"{served.url}/schemagroups/g/schemas").json()) == {"GraphQL"}
    assert annals("log", "verify", "--database", database, cwd=tmp_path).returncode == 0


def test_an_interrupted_import_leaves_none_behind(tmp_path: Path) -> None:
    document = {"schemagroups": {"g": {"schemas": {"s": {"format": "XSD/1.0", "schema": BOMB.decode()}}}}}
    (tmp_path / "all.json").write_text(json.dumps(document))
    command = [sys.executable, "-m", "annals", "import", "all.json"]
    settings = environment(ANNALS_CHECK_SECONDS="600")
    # A shell that runs the tests in the background may ignore interrupts, and its children inherit that.
    interruptible = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(
        command, cwd=tmp_path, env=settings, stderr=subprocess.PIPE, preexec_fn=interruptible
    ) as process:
        busy(Served("", process))
        mine = children(process.pid)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) != 0
    assert soon(lambda: not any(map(lives, mine)), 60)


def test_one_that_is_lost_is_replaced(served: Served) -> None:
    put(served.url, *GRAPHQL).raise_for_status()
    for turn in range(3):
        idle = children(served.process.pid)
        assert len(idle) in ONE
        kill(idle)
        put(served.url, GRAPHQL[0], GRAPHQL[1] + b" # %d" % turn).raise_for_status()


def test_one_that_is_lost_at_work_costs_its_document_only(served: Served) -> None:
    with ThreadPoolExecutor(1) as client:
        lost = client.submit(put, served.url, "XSD/1.0", BOMB)
        os.kill(busy(served), signal.SIGKILL)
        assert (lost.result().status_code, "more memory" in lost.result().json()["detail"]) == (400, True)
    put(served.url, *GRAPHQL).raise_for_status()


def test_they_know_no_secrets(served: Served) -> None:
    put(served.url, *GRAPHQL).raise_for_status()
    child = children(served.process.pid)[0]
    names = {entry.partition(b"=")[0].decode() for entry in Path(f"/proc/{child}/environ").read_bytes().split(b"\0")}
    assert not {name for name in names if name.startswith("ANNALS_") or name in ("HOME", "PYTHONPATH")}


@pytest.mark.long
def test_what_is_kept_parsed_takes_a_share_of_the_memory_only() -> None:
    # a process that has checked many documents has enough memory for another large one
    checker = DocumentChecker(CheckLimits(workers=1, memory=512 << 20))
    fields = "".join(f"  field{number}(argument: Int): String\n" for number in range(5000))
    for turn in range(20):
        content = f"type Query {{\n{fields}  last{turn}: Int }}".encode()
        document_check = FormatCheck("graphql/october2021", digest(content))
        assert checker.check([document_check], {digest(content) or "": content}.__getitem__) == {document_check: ()}
