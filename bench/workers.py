"""Reads of one and of two workers: for each second of processor time, and in all.

Both servers run on one store, and are measured in turns, over eight connections for each worker. The processor time is
that of their processes; on PostgreSQL the database adds its own.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from bench.figures import Figure, Want
from bench.load import CONNECTIONS, rate
from bench.places import Place, serving
from bench.reading import WHAT, fill
from tests.support.serving import Served

#: Least share of the reads of one worker for each second of processor time.
BOUND: Final = 0.9
RESOURCES: Final = 1000
_TICKS: Final = os.sysconf("SC_CLK_TCK")
#: Of the fields after the name of the program in `/proc/PID/stat`: user time and system time.
_TIMES: Final = slice(11, 13)


class _Reads(NamedTuple):
    """for_cpu: reads for each second of processor time. in_all: reads a second."""

    for_cpu: float
    in_all: float


def measure(place: Place, quick: bool) -> Iterator[Figure]:
    """Two figures for each form of answer."""
    with place.fresh() as (database, folder), ExitStack() as stack:
        servers = []
        for count in (1, 2):
            own = folder / str(count)
            own.mkdir()
            servers.append(stack.enter_context(serving(database, own, "--workers", str(count))))
        fill(servers[0].url, RESOURCES)
        paths = [f"/schemagroups/group{n // 100}/schemas/schema{n % 100}/versions/1" for n in range(RESOURCES)]
        for what, suffix in WHAT.items():
            wanted = [path + suffix for path in paths]
            found = [
                [_reads(server, count, wanted, quick, folder) for count, server in enumerate(servers, 1)]
                for _ in range(1 if quick else 3)
            ]
            one, two = sorted(found, key=lambda pair: pair[1].for_cpu / pair[0].for_cpu)[len(found) // 2]
            yield from _figures(what, place.name, one, two)


def _figures(what: str, store: str, one: _Reads, two: _Reads) -> Iterator[Figure]:
    shown = f"{two.for_cpu:,.0f}/s", f"{one.for_cpu:,.0f}/s", two.for_cpu / one.for_cpu
    yield Figure(f"{what}, per CPU second", store, "2 workers, 1 worker", *shown, Want.AT_LEAST, BOUND)
    shown = f"{two.in_all:,.0f}/s", f"{one.in_all:,.0f}/s", two.in_all / one.in_all
    yield Figure(f"{what}, in all", store, "2 workers, 1 worker", *shown, Want.AT_LEAST, None)


def _reads(server: Served, workers: int, paths: list[str], quick: bool, folder: Path) -> _Reads:
    seconds, connections = 1 if quick else 3, workers * CONNECTIONS
    rate(server.url, paths, 1, folder, connections)
    before = _cpu_seconds(server.process.pid)
    in_all = rate(server.url, paths, seconds, folder, connections)
    return _Reads(in_all * seconds / (_cpu_seconds(server.process.pid) - before), in_all)


def _cpu_seconds(parent: int) -> float:
    """The processor time that a process and its children have used."""
    said = subprocess.run(["pgrep", "--parent", str(parent)], capture_output=True, text=True, check=False).stdout
    stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in (parent, *said.split())]
    return sum(int(ticks) for fields in stats for ticks in fields[_TIMES]) / _TICKS
