"""Signals, closed pipes and full disks end a verb soon, with its exit code, and leave no half of its work behind."""

from __future__ import annotations

import json
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from time import sleep
from typing import Final

import pytest

from annals.api.cli.atomic_files import atomic_file
from annals.api.cli.options import load_settings
from annals.api.cli.outcome import ExitCode
from annals.api.cli.progress import LINE_SECONDS, work_progress
from annals.api.cli.verbs.import_files import record_command
from annals.api.http.streaming import STALL_SECONDS
from annals.api.registry.open_registry import open_registry
from annals.domain.decisions.commands import ReplaceModel
from tests.support.console import Annals
from tests.support.polling import until
from tests.support.serving import environment

COMMAND: Final = str(Path(sys.executable).with_name("annals"))
GROUPS: Final = 3000
#: Seconds in which a verb has to end: mostly a fraction of one, but never those that a stalled reader may take.
SOON: Final = STALL_SECONDS - 2
Process = subprocess.Popen[bytes]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a store whose export does not fit into a pipe."""
    folder = tmp_path_factory.mktemp("store")
    _write_groups(folder / "data.json", "x" * 2000)
    url = f"sqlite:///{folder}/annals.db"
    subprocess.run([COMMAND, "import", "data.json", "--database", url], cwd=folder, env=environment(), check=True)
    return url


@contextmanager
def running(*arguments: str, before: Callable[[], object] = lambda: None) -> Iterator[Process]:
    """A process of the command in the current folder, which prints each report of progress. before: called in it."""

    def prepare() -> None:
        # A process that a script starts in the background ignores SIGINT, one of `nohup` SIGHUP; so do its children.
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        before()

    environ, pipe = environment(**{LINE_SECONDS: "0"}), subprocess.PIPE
    with subprocess.Popen([COMMAND, *arguments], env=environ, stdout=pipe, stderr=pipe, preexec_fn=prepare) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_reader_that_goes_away_ends_an_export(store: str) -> None:
    with running("export", "--database", store) as process:
        assert process.stdout
        process.stdout.read(1000)
        process.stdout.close()
        assert (process.wait(SOON), _errors(process)) == (ExitCode.REFUSED, [])


def test_ctrl_c_ends_an_export_whose_reader_stalls(store: str) -> None:
    with running("export", "--database", store) as process:
        assert process.stdout
        process.stdout.read(1000)
        sleep(0.3)  # until the pipe is full again
        process.send_signal(signal.SIGINT)
        assert (process.wait(SOON), _errors(process)) == (ExitCode.INTERRUPTED, [])


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, ExitCode.INTERRUPTED),
        (signal.SIGTERM, -signal.SIGTERM),
        (signal.SIGHUP, -signal.SIGHUP),
    ],
)
def test_an_export_that_a_signal_ends_leaves_no_file(store: str, folder: Path, number: int, code: int) -> None:
    with running("export", "--database", store, "--output", "all.json") as process:
        until(lambda: [*folder.iterdir()])
        process.send_signal(number)
        assert (process.wait(SOON), [*folder.iterdir()]) == (code, [])


def test_a_full_disk_ends_an_export_without_a_file(store: str, folder: Path) -> None:
    limit = 300_000

    def limit_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    (folder / "all.json").write_text("before")
    with running("export", "--database", store, "--output", "all.json", before=limit_files) as process:
        line = b"annals: cannot write all.json: File too large."
        assert (process.wait(SOON), _errors(process)) == (ExitCode.USAGE, [line])
    assert [(file.name, file.read_text()) for file in folder.iterdir()] == [("all.json", "before")]


def test_two_exports_to_one_file_leave_a_whole_one(store: str, folder: Path) -> None:
    arguments = ("export", "--database", store, "--output", "all.json")
    with running(*arguments) as one, running(*arguments) as other:
        assert (one.wait(60), other.wait(60)) == (ExitCode.DONE, ExitCode.DONE)
    assert [file.name for file in folder.iterdir()] == ["all.json"]
    assert len(json.loads((folder / "all.json").read_text())["schemagroups"]) == GROUPS


def test_writers_of_one_file_do_not_share_bytes(folder: Path) -> None:
    path = folder / "all.json"
    with atomic_file(path) as slow:
        slow.write(b"slow")
        with pytest.raises(ZeroDivisionError), atomic_file(path) as failing:
            failing.write(bytes(1 // 0))
        assert not path.exists()
        with atomic_file(path) as fast:
            fast.write(b"fast and long")
        assert path.read_bytes() == b"fast and long"
    assert [(file.name, file.read_bytes()) for file in folder.iterdir()] == [("all.json", b"slow")]


def test_ctrl_c_undoes_the_import_of_a_file(annals: Annals, folder: Path) -> None:
    (folder / "first.json").write_text('{"schemagroups": {"first": {}}}')
    _write_groups(folder / "second.json")
    with running("import", "first.json", "second.json") as process:
        assert process.stdout and process.stderr
        while b"built 1000 " not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(SOON) == ExitCode.INTERRUPTED
        line = b"annals: second.json: stopped by Ctrl-C; nothing of this file was recorded."
        assert _errors(process)[-1] == line
        assert process.stdout.read().startswith(b"first.json: 2 events, ")
    assert [*json.loads(annals("export").out)["schemagroups"]] == ["first"]
    assert annals("log", "verify").code == ExitCode.DONE


def test_ctrl_c_after_the_commit_does_not_hide_the_result() -> None:
    stop = Event()

    class StopAtCommit:
        def committed(self, commands: int, refused: int, seconds: float) -> None:
            stop.set()

    model = {"groups": {"dirs": {"singular": "dir"}}}
    registry = open_registry(load_settings(database="sqlite:///annals.db"), commit_listener=StopAtCommit())
    try:
        stop.clear()
        with work_progress() as work:
            recorded = record_command(registry.command_bus, ReplaceModel(model), work, stop)
        assert (stop.is_set(), recorded.position) == (True, registry.store.log_end().position)
    finally:
        registry.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_server_that_a_signal_stops_has_done_its_work(number: int, workers: str) -> None:
    with running("serve", "--port", "0", "--workers", workers) as process:
        assert process.stderr
        while b"startup complete" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(number)
        errors = process.communicate(timeout=30)[1]
        assert (process.returncode, b"was ended by" in errors) == (ExitCode.DONE, False)


def test_a_second_ctrl_c_does_not_wait_for_requests_and_closes_the_store(folder: Path) -> None:
    with running("serve", "--port", "0") as process:
        assert process.stderr
        lines = b""
        while b"startup complete" not in lines:
            lines += process.stderr.readline()
        port = int(lines.split(b"Annals serves http://127.0.0.1:")[1].split(b" ")[0])
        with socket.create_connection(("127.0.0.1", port)) as connection:
            head = f"PUT /schemagroups/g HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-length: 9\r\n\r\n"
            connection.sendall(head.encode() + b"{")
            sleep(0.5)  # until the server waits for the rest
            process.send_signal(signal.SIGINT)
            while b"Waiting for connections" not in process.stderr.readline():
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            errors = process.communicate(timeout=SOON)[1]
        assert (process.returncode, b"Traceback" in errors) == (ExitCode.DONE, False), errors
    assert [file.name for file in folder.glob("annals.db*")] == ["annals.db"]


def _errors(process: Process) -> list[bytes]:
    """The lines of stderr, without those about progress."""
    assert process.stderr
    return [line for line in process.stderr.read().splitlines() if not line.startswith(b"annals: exported ")]


def _write_groups(path: Path, description: str = "") -> None:
    group = {"description": description} if description else {}
    path.write_text(json.dumps({"schemagroups": {f"g{number}": group for number in range(GROUPS)}}))
