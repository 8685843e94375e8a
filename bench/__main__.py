"""Measures, prints a table and writes docs/benchmarks.md."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

from rich.console import Console
from rich.table import Table

from bench import (
    cesql,
    confluent,
    deliveries,
    exporting,
    feeds,
    filtering,
    formats,
    importing,
    lakes,
    large_lakes,
    large_logs,
    load,
    pages,
    pasts,
    peers,
    publishing,
    reading,
    rebuilding,
    replicating,
    rights,
    searching,
    sinks,
    sparking,
    workers,
    writing,
)
from bench.against import Against
from bench.figures import HEAD, Figure, markdown
from bench.places import Place, places

REPORT: Final = Path(__file__).parents[1] / "docs" / "benchmarks.md"
INTRODUCTION: Final = """\
# Benchmarks

`make bench` writes this file; it has the last run of each subject. Next to each figure is its floor, measured on the
same machine in the same run. The ratio is the result that matters.

What to expect of a server that shares two cores with its clients and its database. Where a range is given, two tables
of different days, or several rows of a table, are its ends:

- Documents and details, read with wrk: 13,000 to 15,000 a second on SQLite, 9,000 to 10,700 on PostgreSQL
  ([reading](#reading)). A client in Python, which takes more of the two cores, reads 4,000 to 8,000 a second from one
  process of the server ([workers](#workers), [against](#against)).
- Creating a Resource with a checked document, durably: 220 to 340 a second from one client and 390 to 580 from 16 on
  SQLite, 160 and 300 to 450 on PostgreSQL ([writing](#writing), [against](#against)); the search index, which follows
  within a second, takes some of it. A registry that keeps all in memory, or checks nothing, can be faster.
- A new Version: 200 to 270 a second on SQLite, 120 to 160 on PostgreSQL, from one client.
- Imports: 10,000 schemas in one request take 2.7 s on SQLite and 3.2 s on PostgreSQL ([importing](#importing)).
  Requests of 500 entities import 1,600 and 1,300 entities a second. They cost more than in a registry that keeps no
  history.
- Importing 500 Resources and deleting them again takes 0.3 s.
- The database is seven times as large as the text of an import on SQLite, and fourteen times on PostgreSQL, where each
  row and each entry of an index costs some thirty bytes more. An event of a mixed history takes 2.2 to 2.4 kB on
  SQLite, and 4 kB on PostgreSQL after `annals rebuild`, which packs it, with the read model, its history and the filter
  index. [Where time and space go](explanation/performance.md#the-size-of-a-store) has the parts.
- A sort takes longest in a collection of about 10,000 Resources: 10 ms on SQLite and 41 ms on PostgreSQL. In smaller
  and in larger ones it takes up to 5 ms ([filtering](#filtering)).
- A client in Python gets a list of 1,000 Resources in 7.5 ms, and got it in 5 ms when rows were not compressed: the
  price of a smaller database ([against](#against)).
- One small write in about 85 takes up to 20 or 30 ms, because it also writes the changes to the index that are due.
"""
#: The section of figures compared with those of another commit.
AGAINST: Final = "against"


class Subject(Protocol):
    """Something to measure."""

    def measure(self, place: Place, quick: bool) -> Iterator[Figure]:
        """Its figures on one kind of store."""


SUBJECTS: Final[dict[str, Subject]] = {
    "reading": reading,
    "workers": workers,
    "filtering": filtering,
    "rights": rights,
    "pages": pages,
    "searching": searching,
    "importing": importing,
    "writing": writing,
    "confluent": confluent,
    "exporting": exporting,
    "rebuilding": rebuilding,
    "sparking": sparking,
    "large_logs": large_logs,
    "lakes": lakes,
    "large_lakes": large_lakes,
    "pasts": pasts,
    "feeds": feeds,
    "cesql": cesql,
    "deliveries": deliveries,
    "sinks": sinks,
    "publishing": publishing,
    "replicating": replicating,
    "formats": formats,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("subjects", nargs="*", help=f"of {', '.join(SUBJECTS)}; all by default")
    parser.add_argument("--against", metavar="COMMIT", help="compare these sources with those of a commit")
    parser.add_argument(
        "--peers", metavar="URL", nargs="+", help="measure xRegistry servers; writes to them, no report"
    )
    parser.add_argument("--work", metavar="TEXT", default="", help="only workloads whose names have it; no report")
    parser.add_argument("--store", choices=("SQLite", "PostgreSQL"), help="only this one, which is all the report has")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that all of it runs; no report")
    wanted = parser.parse_args()
    if unknown := set(wanted.subjects) - set(SUBJECTS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    if wanted.peers:
        _show(list(_printed(peers.measure(wanted.peers, wanted.work, wanted.quick))))
        return
    figures: list[Figure] = []
    with places() as (all_kinds, missing):
        if missing:
            print(missing, file=sys.stderr)
        kinds = [kind for kind in all_kinds if wanted.store in (None, kind.name)]
        for name, subject in _subjects(wanted.subjects, wanted.against, wanted.work):
            found = list(_measured(subject, kinds, wanted.quick))
            figures += found
            if not wanted.quick and not wanted.work:
                _report(name, found, wanted.against if name == AGAINST else None)
    _show(figures)


def _show(figures: list[Figure]) -> None:
    Console(width=None if sys.stdout.isatty() else 200).print(_table(figures))


def _subjects(wanted: Sequence[str], against: str | None, work: str) -> Iterator[tuple[str, Subject]]:
    """What is measured: with `against` that alone, unless subjects are named."""
    yield from ((name, SUBJECTS[name]) for name in wanted or (() if against else SUBJECTS))
    if against:
        yield AGAINST, Against(against, work)


def _measured(subject: Subject, kinds: Iterable[Place], quick: bool) -> Iterator[Figure]:
    for place in kinds:
        yield from _printed(subject.measure(place, quick))


def _printed(figures: Iterable[Figure]) -> Iterator[Figure]:
    for figure in figures:
        print(" | ".join(figure.cells()), file=sys.stderr, flush=True)
        yield figure


def _table(figures: list[Figure]) -> Table:
    table = Table(*HEAD)
    for figure in figures:
        table.add_row(*figure.cells(), style="" if figure.met else "red")
    return table


def _report(name: str, figures: list[Figure], against: str | None) -> None:
    """Replaces a subject's figures in the report. against: the commit that they are compared with."""
    sections = dict(_sections(REPORT.read_text())) if REPORT.exists() else {}
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    conditions = f"{datetime.now(UTC):%Y-%m-%d}, {machine}, requests from {load.client()}."
    compared_commit = [f"The other version is {against}."] if against else []
    sections[name] = "\n".join((conditions, *compared_commit, "", *markdown(figures)))
    known = (f"## {each}\n\n{sections[each]}\n" for each in (*SUBJECTS, AGAINST) if each in sections)
    REPORT.write_text("\n".join((INTRODUCTION, *known)))


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """The subjects of a report and what is said of each."""
    for section in text.split("\n## ")[1:]:
        name, _, rest = section.partition("\n")
        yield name, rest.strip()


if __name__ == "__main__":
    main()
