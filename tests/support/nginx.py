"""An nginx that a test starts as an ordinary process, with all of its files in a folder."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.left_out import leave_out
from tests.support.ports import wait_for_port

NO_NGINX = "no nginx: apt-get install nginx, or put nginx on PATH"


@contextmanager
def nginx(folder: Path, server: str, port: int) -> Iterator[None]:
    """Runs nginx with a `server` block during the block. port: on which it listens."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin") or leave_out(NO_NGINX)
    # Debian's own paths of these belong to root.
    temporary = "".join(
        f"{name}_temp_path {folder / name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    configuration, errors = folder / "nginx.conf", folder / "error.log"
    # Without a master process it stays with the user who runs the tests. Debian's configuration has `gzip on`, too.
    configuration.write_text(
        f"daemon off;\nmaster_process off;\npid {folder / 'nginx.pid'};\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temporary}gzip on;\ngzip_types *;\ngzip_min_length 1;\n{server}}}\n"
    )
    with (folder / "output").open("wb") as output:
        command = [program, *map(str, ("-p", folder, "-c", configuration, "-e", errors))]
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
        try:
            wait_for_port(port, lambda: process.poll() is None)
            yield
        finally:
            process.terminate()
            process.wait(timeout=30)
            # pytest shows this with a test that fails.
            print((folder / "output").read_text(), errors.read_text() if errors.exists() else "")
