"""Progress bars for long work, on stderr and only in a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

#: Called with the finished and the total amount; the total is 0 if unknown.
ReportProgress = Callable[[int, int], None]

STDERR = Console(stderr=True, highlight=False, soft_wrap=True)


@contextmanager
def progress_bar(label: str) -> Iterator[ReportProgress]:
    """A bar with its numbers and the elapsed time; it pulses until a total is known."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=STDERR, disable=not STDERR.is_terminal) as progress:
        task = progress.add_task(label, total=None)

        def report(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total or None)

        yield report
