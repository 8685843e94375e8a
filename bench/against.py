"""Two versions of the registry compared: a client process over HTTP, in rounds that take turns.

Three servers run: the commit before, the sources as they are, and these a second time. The third one is the control:
what it differs by from the second is chance.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from multiprocessing.pool import Pool
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from bench import client
from bench.client import Workload, workloads
from bench.figures import Figure, Want
from bench.places import Place, serving

ROOT: Final = Path(__file__).parents[1]
#: Percent that a figure may be worse by, unless the control differs by more.
ALLOWED: Final = 5.0


class Rates(NamedTuple):
    """What one round gave: entities a second of the commit, of these sources, and of these once more."""

    before: float
    now: float
    again: float


class Against:
    """Measures the sources against those of a commit."""

    def __init__(self, commit: str, work: str = "") -> None:
        """work: only workloads whose names have it."""
        self._commit = commit
        self._work = work

    def measure(self, place: Place, quick: bool) -> Iterator[Figure]:
        """One figure for each workload: entities a second, compared with those of the commit."""
        rounds, seconds = (2, 0.3) if quick else (5, 2.0)
        with ExitStack() as stack:
            before = stack.enter_context(checkout(self._commit))
            urls = [stack.enter_context(_served(place, sources)) for sources in (before, ROOT, ROOT)]
            pool = stack.enter_context(get_context("spawn").Pool(1))
            for url in urls:
                pool.apply(client.prepare, (url,))
            starts = [0] * len(urls)
            for number, workload in workloads(self._work):
                rates = [_round(pool, urls, number, starts, seconds, turn) for turn in range(rounds)]
                yield figure(workload, place.name, rates)


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """The sources of a commit, in a folder of their own for as long as the context lasts."""
    with TemporaryDirectory(prefix="annals-before-") as folder:
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", folder, commit], cwd=ROOT, check=True)
        try:
            _make_importable(Path(folder))
            yield Path(folder)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", folder], cwd=ROOT, check=True)


def _make_importable(sources: Path) -> None:
    """Gives the sources of a commit before the import name `annals` a package that starts them by that name."""
    package = sources / "annals"
    if not package.exists():
        package.mkdir()
        (package / "__init__.py").touch()
        (package / "__main__.py").write_text("from api.cli import main\n\nmain()\n")


@contextmanager
def _served(place: Place, sources: Path) -> Iterator[str]:
    with place.fresh() as (database, folder), serving(database, folder, PYTHONPATH=str(sources)) as served:
        yield served.url


def _round(pool: Pool, urls: list[str], number: int, starts: list[int], seconds: float, turn: int) -> Rates:
    """The rates of the three servers; which one begins changes from turn to turn."""
    rates = [0.0] * len(urls)
    for step in range(len(urls)):
        which = (turn + step) % len(urls)
        rates[which], starts[which] = pool.apply(client.rate, (urls[which], number, starts[which], seconds))
    return Rates(*rates)


def figure(workload: Workload, store: str, rounds: list[Rates]) -> Figure:
    """The middle of the rounds' ratios, held against how far half of the control's ratios lie apart."""
    spread = _spread([100 * rates.again / rates.now for rates in rounds])
    share = median(100 * rates.now / rates.before for rates in rounds)
    now, before = median(rates.now for rates in rounds), median(rates.before for rates in rounds)
    control, bound = f"control ± {spread:.1f} %", round(max(0.0, 100 - max(ALLOWED, spread)), 1)
    return Figure(workload.name, store, control, f"{now:,.0f}/s", f"{before:,.0f}/s", share, Want.AT_LEAST, bound, " %")


def _spread(ratios: list[float]) -> float:
    low, _, high = quantiles(ratios, n=4, method="inclusive")
    return max(abs(100 - low), abs(high - 100))
