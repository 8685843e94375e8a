"""Virtual environments for Python programs that need other releases of packages than the project."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from tests.support.left_out import leave_out


def environment(requirement: str) -> Path:
    """The `python` of an environment with one release, such as `name==1.0`, and its dependencies.

    The environment stays below the user's cache directory. Its commands only run as modules, because it is moved after
    its creation. Skips the test if pip cannot download the release.
    """
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    home = Path(caches, "annals", "environments", f"{requirement}-{sys.version_info.major}.{sys.version_info.minor}")
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        # Created next to its place and moved there at once, because several test processes may create it.
        with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
            made = Path(scratch, "home")
            venv.create(made, symlinks=True)
            pip = [
                sys.executable,
                "-m",
                "pip",
                "--python",
                str(made / "bin" / "python"),
                "install",
                "--quiet",
                requirement,
            ]
            done = subprocess.run(pip, capture_output=True, text=True, check=False)
            if done.returncode:
                leave_out(f"pip cannot bring {requirement}: {done.stderr.strip()[-500:]}")
            if not home.exists():
                made.rename(home)
    return home / "bin" / "python"
