"""PgBouncer, which shares the sessions of a PostgreSQL server among more clients than the server has sessions."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import make_url

from tests.support.left_out import leave_out
from tests.support.ports import free_port, wait_for_port
from tests.support.postgres import unprivileged

NO_PGBOUNCER = "no PgBouncer: apt-get install pgbouncer, or put pgbouncer on PATH"


@contextmanager
def pgbouncer(database: str, pool_mode: str) -> Iterator[str]:
    """The URL of a database through PgBouncer, which runs during the block.

    pool_mode: `session` or `transaction`: for how long a client has a session of the server.
    """
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin") or leave_out(NO_PGBOUNCER)
    target, port = make_url(database), free_port()
    password = f" password={target.password}" if target.password else ""
    # Not in the test's own folder, which belongs to the user who runs the tests: PgBouncer refuses to run as root.
    with TemporaryDirectory(prefix="annals-pgbouncer-") as folder:
        Path(folder).chmod(0o755)
        settings = Path(folder, "pgbouncer.ini")
        settings.write_text(
            f"[databases]\n* = host={target.host} port={target.port} user={target.username}{password}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
            f"pool_mode = {pool_mode}\n"
        )
        process = subprocess.Popen([program, "-q", settings], user=unprivileged(), stderr=subprocess.DEVNULL)
        try:
            wait_for_port(port, lambda: process.poll() is None)
            yield target.set(host="127.0.0.1", port=port, password=None).render_as_string()
        finally:
            process.terminate()
            process.wait(timeout=30)
