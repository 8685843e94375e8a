"""How much memory processes take, and how long they work, read where Linux tells."""

from __future__ import annotations

import os
import re
from contextlib import suppress
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
    """Resets the peak to what is in memory now."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def proportional(pid: int) -> int:
    """Bytes in memory now of a process and all its descendants; what several of them share counts once."""
    total = 0
    for each in family(pid):
        with suppress(OSError):  # it has ended meanwhile
            found = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{each}/smaps_rollup").read_text(), re.MULTILINE)
            total += int(found[1]) * 1024 if found else 0
    return total


def busy(pid: int) -> float:
    """Seconds that processors have worked for a process and all its descendants, those that it waited for included."""
    ticks = 0
    for each in family(pid):
        with suppress(OSError):
            # Behind the name, which may have spaces: user and system time, then those of children that have ended.
            ticks += sum(map(int, Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def family(pid: int) -> list[int]:
    """A process and its descendants that run now."""
    found = [pid]
    for each in found:
        with suppress(OSError):
            for task in Path(f"/proc/{each}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found


def _status(pid: int, name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) * 1024
