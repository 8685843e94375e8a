"""npm packages for tests; downloaded once, stored below the user's cache directory."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.support.left_out import leave_out


def packages(*names: str) -> Path:
    """A folder whose `node_modules` has packages, each named `name@version`.

    Skips the test if there is no npm, or it cannot download them.
    """
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    home = Path(caches, "annals", "npm", hashlib.sha256("\n".join(names).encode()).hexdigest()[:16])
    if not home.exists():
        npm = shutil.which("npm")
        if npm is None:
            leave_out("no npm: apt-get install npm, or put npm on PATH")
        home.parent.mkdir(parents=True, exist_ok=True)
        # Created next to its place and moved there at once, because several test processes may create it.
        with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
            made = Path(scratch, "home")
            made.mkdir()
            silent = ("--silent", "--no-audit", "--no-fund", "--ignore-scripts")
            call = [npm, "install", *silent, "--prefix", str(made), *names]
            if subprocess.run(call, capture_output=True, check=False).returncode:
                leave_out(f"npm cannot bring {', '.join(names)}")
            if not home.exists():
                made.rename(home)
    return home


def run(script: str, home: Path, question: Any) -> Any:
    """Runs a script that reads a question as JSON and prints an answer as JSON. Skips the test without node."""
    node = shutil.which("node")
    if node is None:
        leave_out("no node: apt-get install nodejs, or put node on PATH")
    done = subprocess.run(
        [node, "-e", script], cwd=home, input=json.dumps(question), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)
