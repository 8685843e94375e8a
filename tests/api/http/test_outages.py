"""A store that cannot be used: the response says so, and nothing has changed."""

from __future__ import annotations

import random
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from annals.commands.store.database.engine import open_engine
from tests.support.registries.in_process import Api, create, serving
from tests.support.stores import lose_commits

BIG = random.Random(1).randbytes(1 << 20)  # compression does not shorten it


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A filesystem with room for a new registry and little more."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1200k", "tmpfs", tmp_path], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"only root mounts filesystems: {mounted.stderr!r}")
    yield tmp_path
    subprocess.run(["umount", "--lazy", tmp_path], check=True)


@contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    """Lets the kernel refuse to write files beyond a size, as a quota would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def check_unavailable(api: Api, reason: str) -> None:
    """Asserts that a large write is refused for a reason of the store, and that reads return the same as before."""
    before = api.get("/export"), api.get("/-/log/head")
    answer = api.send("PUT", "/dirs/d/files/big", BIG)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json() == {
        "type": "http://h/r/-/docs#store_unavailable",
        "title": f'The store could not be used for "/dirs/d/files/big": {reason}. '
        "Requests that were not acknowledged may be sent again.",
        "subject": "/dirs/d/files/big",
        "args": {"error_detail": reason},
    }
    assert (api.get("/export"), api.get("/-/log/head")) == before


def test_a_full_disk_is_no_fault_of_the_server(tiny: Path) -> None:
    # ENT-4, ERR-1: refused as a whole; a write that fits succeeds at once
    url = f"sqlite:///{tiny / 'annals.db'}"
    create(url)
    with serving(url) as api:
        api.done("PUT", "/dirs/d/files/f", b"small")
        check_unavailable(api, "its disk is full")
        api.done("PUT", "/dirs/d/files/g", b"small")


def test_a_disk_that_fails_is_no_fault_of_the_server(sqlite_url: str, caplog: pytest.LogCaptureFixture) -> None:
    # ENT-4, ERR-1: refused as a whole; when the disk works again, so does the registry; the log has a line
    create(sqlite_url)
    with serving(sqlite_url) as api:
        api.done("PUT", "/dirs/d/files/f", b"small")
        with no_file_larger_than(1 << 19):
            check_unavailable(api, "its disk fails")
        api.done("PUT", "/dirs/d/files/big", BIG)
    failures = [(each.getMessage(), each.exc_info) for each in caplog.records if each.levelname == "ERROR"]
    assert failures == [("request failed: its disk fails", None)]


def test_a_write_that_may_have_been_carried_out(postgres_url: str) -> None:
    # ENT-4: a client that sends it again at once might write twice, so the answer neither asks for it nor has a time
    create(postgres_url)
    with serving(postgres_url) as api, open_engine(postgres_url).connect() as connection:
        lose_commits(connection)
        connection.commit()
        answer = api.send("PUT", "/dirs/d/files/f", b"text")
        assert (answer.status_code, answer.headers.get("retry-after")) == (503, None)
        assert answer.json() == {
            "type": "http://h/r/-/docs#write_unconfirmed",
            "title": 'The database did not confirm the write to "/dirs/d/files/f", which may have been carried out or '
            "not. The log shows it; look there before you send the request again.",
            "subject": "/dirs/d/files/f",
        }
