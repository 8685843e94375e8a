"""Python programs that tests run and that need other releases than the project: each in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

_DONE = "complete"


def environment(requirement: str) -> Path:
    """The `python` of an environment with one release, such as `name==1.0`, and what it needs.

    It is made once and stays below the user's cache directory. Skips the test where pip cannot bring the release.
    """
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    home = Path(caches, "annals", "environments", f"{requirement}-{sys.version_info.major}.{sys.version_info.minor}")
    python = home / "bin" / "python"
    if not (home / _DONE).exists():
        # An environment cannot be moved, so two processes that make it at once both write to its place.
        venv.create(home)
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", requirement]
        if subprocess.run(pip, capture_output=True, check=False).returncode:
            pytest.skip(f"pip cannot bring {requirement}")
        (home / _DONE).touch()
    return python
