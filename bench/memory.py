"""How much memory a process takes, read where Linux tells."""

from __future__ import annotations

import re
from pathlib import Path


def resident(pid: int) -> int:
    """Bytes in memory now."""
    return _status(pid, "VmRSS")


def own(pid: int) -> int:
    """Bytes in memory now that no file is behind: what a database maps comes and goes as the machine has room."""
    return _status(pid, "RssAnon")


def peak(pid: int) -> int:
    """The most bytes in memory since `forget_peak`."""
    return _status(pid, "VmHWM")


def forget_peak(pid: int) -> None:
    """Starts the peak anew at what is in memory now."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def _status(pid: int, name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) * 1024
