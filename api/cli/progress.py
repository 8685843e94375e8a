"""The progress of long work on stderr: bars in a terminal, otherwise a line every ten seconds."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text

#: Called with the finished and the total amount; the total is 0 if unknown.
ReportProgress = Callable[[int, int], None]

STDERR = Console(stderr=True, highlight=False, soft_wrap=True)
#: The environment variable with the seconds between two lines, for tests.
LINE_SECONDS: Final = "_ANNALS_PROGRESS_SECONDS"
#: Leaves room for the numbers in a terminal of 80 columns.
_BAR_WIDTH: Final = 16


class WorkProgress:
    """The steps of a long work. line_seconds: the time between two lines; None for bars, which draw themselves."""

    def __init__(self, progress: Progress, line_seconds: float | None) -> None:
        self._progress = progress
        self._line_seconds = line_seconds
        self._next_line = monotonic() + (line_seconds or 0)
        self._task_ids: dict[tuple[str, str], TaskID] = {}

    def step(self, done_word: str, unit: str) -> ReportProgress:
        """The function that receives the progress of a step, such as `imported` and `entities`.

        A call costs some microseconds, so call it once per batch. A smaller amount than before starts the step again.
        """
        return lambda done, total: self._update((done_word, unit), done, total)

    def _update(self, step: tuple[str, str], done: int, total: int) -> None:
        if step not in self._task_ids:
            self._task_ids[step] = self._progress.add_task(step[0], total=None, unit=step[1])
        task_id = self._task_ids[step]
        if done < self._task(task_id).completed:
            self._progress.reset(task_id)
        self._progress.update(task_id, completed=done, total=total or None)
        if self._line_seconds is not None and monotonic() >= self._next_line:
            self._next_line = monotonic() + self._line_seconds
            STDERR.print(f"annals: {step[0]} {amount_text(self._task(task_id))}", markup=False)

    def _task(self, task_id: TaskID) -> Task:
        return self._progress.tasks[task_id]  # tasks are never removed, so the id of one is its index


@contextmanager
def work_progress() -> Iterator[WorkProgress]:
    """Shows the progress of the work in this block. Without a terminal, work of a few seconds prints nothing."""
    has_bars, output_is_seen = STDERR.is_interactive, sys.stdout.isatty()
    line_seconds = None if has_bars else float(os.environ.get(LINE_SECONDS, "10"))
    columns = (TextColumn("{task.description}"), BarColumn(_BAR_WIDTH), _AmountColumn())
    # rich prints the output of a verb above the bars, on the console of the bars: right only if both are one terminal.
    with Progress(*columns, console=STDERR, disable=not has_bars, redirect_stdout=output_is_seen) as progress:
        yield WorkProgress(progress, line_seconds)


def amount_text(task: Task) -> str:
    """The amount that is done, with its rate and the time left, as far as they are known."""
    unit, done = task.fields["unit"], int(task.completed)
    parts = [f"{done} {unit}" if task.total is None else f"{done} of {int(task.total)} {unit}"]
    if task.speed:
        parts.append(f"{task.speed:.0f}/s" if task.speed >= 10 else f"{task.speed:.1f}/s")
    if task.time_remaining:
        parts.append(f"{_duration_text(int(task.time_remaining))} left")
    return ", ".join(parts)


def _duration_text(seconds: int) -> str:
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


class _AmountColumn(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(amount_text(task), no_wrap=True)
