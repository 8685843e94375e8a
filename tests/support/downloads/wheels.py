"""Wheels that tests inspect: downloaded by pip once, stored below the user's cache directory, not installed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.left_out import leave_out


def wheel(name: str, version: str) -> Path:
    """The wheel of a release on PyPI, without dependencies. Skips the test if pip cannot download it."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    home = Path(caches, "annals", "wheels")
    pattern = f"{name.replace('-', '_')}-{version}-*.whl"
    if not list(home.glob(pattern)):
        home.mkdir(parents=True, exist_ok=True)
        # Created next to its place and moved there at once, because several test processes may create it.
        with tempfile.TemporaryDirectory(dir=home) as scratch:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
            wanted = f"{name}=={version}"
            done = subprocess.run([*pip, "-d", scratch, wanted], capture_output=True, text=True, check=False)
            if done.returncode:
                leave_out(f"pip cannot bring {wanted}; put its wheel into {home}")
            for downloaded in Path(scratch).glob(pattern):
                downloaded.rename(home / downloaded.name)
    return next(home.glob(pattern))
