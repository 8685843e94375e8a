"""Receivers in other languages read the same events and accept the signatures."""

from __future__ import annotations

import json
import shutil
import subprocess
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote

import pytest

from annals.projections.subscriptions.contract import DeliveryResult
from tests.projections.subscriptions.events import event, send_batches, target
from tests.support.downloads.npm import packages

FOREIGN = Path(__file__).with_name("foreign")
KEY = bytes(range(40))
SECRET = f"whsec_{b64encode(KEY).decode()}"


@contextmanager
def javascript(scratch: Path) -> Iterator[Sequence[str]]:
    home = packages("cloudevents@10.0.0", "standardwebhooks@1.1.0")
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node: apt-get install nodejs, or put node on PATH")
    # Node looks for packages relative to the script.
    copied = home / "receiver.js"
    shutil.copyfile(FOREIGN / "receiver.js", copied)
    yield [node, str(copied), SECRET]


@contextmanager
def golang(scratch: Path) -> Iterator[Sequence[str]]:
    go = shutil.which("go")
    if go is None:
        pytest.skip("no go: apt-get install golang, or put go on PATH")
    program = scratch / "receiver"
    command: list[str | Path] = [go, "build", "-mod=readonly", "-o", program, "."]
    done = subprocess.run(command, cwd=FOREIGN / "go", capture_output=True, text=True, timeout=110)
    if done.returncode:
        pytest.skip(f"go cannot build the receiver: {done.stderr[-500:]}")
    yield [str(program), SECRET]


LANGUAGES: dict[str, Callable[..., Any]] = {"javascript": javascript, "go": golang}


class Foreign:
    """A running receiver. url: where it listens. lines: its output."""

    def __init__(self, lines: IO[str]) -> None:
        self.lines = lines
        self.url = f"http://127.0.0.1:{int(lines.readline())}/"

    def received(self) -> Any:
        """What the receiver read from the next request."""
        found = json.loads(self.lines.readline())
        assert "error" not in found, found
        return found


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("javascript", marks=pytest.mark.uses("Node.js")),
        pytest.param("go", marks=pytest.mark.uses("Go")),
    ],
)
def foreign(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Foreign]:
    scratch = tmp_path_factory.mktemp("foreign")
    with (
        LANGUAGES[request.param](scratch) as command,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            yield Foreign(process.stdout)
        finally:
            process.kill()


ATTRIBUTES = {
    "specversion": "1.0",
    "id": "0193e2b8.1",
    "source": "https://registry.example.com",
    "type": "io.xregistry.version.updated",
    "subject": '/a "b" 100% Euro € 😀',
    "xregcorrelationid": "0193e2b8",
}
DATA = {"changed": ["name", "Grüße"]}


@pytest.mark.parametrize("mode", ["structured", "binary", "batched"])
def test_they_read_the_same(foreign: Foreign, mode: str) -> None:
    # SUB-701, SUB-703, SUB-706, SUB-710: attributes, data and signature arrive unchanged, in every mode
    made = event(data=DATA, **ATTRIBUTES)
    assert send_batches(target(foreign.url, mode, key=KEY), [made])[0].result is DeliveryResult.DELIVERED
    found = foreign.received()
    assert found["verified"]
    (one,) = found["events"] if isinstance(found["events"], list) else [found["events"]]
    # Both libraries leave the percent-encoding of headers to the caller.
    decode = unquote if mode == "binary" else str
    assert {name: decode(one[name]) for name in ATTRIBUTES} == ATTRIBUTES
    assert one["time"].startswith("2026-11-21T20:30:15.12")
    assert (one["datacontenttype"], one["data"]) == ("application/json", DATA)


def test_they_read_events_without_data(foreign: Foreign) -> None:
    # SUB-702: they are structured in binary mode too
    assert send_batches(target(foreign.url, "binary"), [event(**ATTRIBUTES)])[0].result is DeliveryResult.DELIVERED
    found = foreign.received()
    assert not found["verified"]  # there is no signature
    assert found["events"]["subject"] == ATTRIBUTES["subject"]
    assert "data" not in found["events"]
