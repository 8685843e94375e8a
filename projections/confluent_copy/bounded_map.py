"""Results of a function in the order of its arguments, computed by threads, a bounded number of them ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from typing import TypeVar

Argument = TypeVar("Argument")
Result = TypeVar("Result")


def bounded_map(
    pool: Executor, threads: int, function: Callable[[Argument], Result], arguments: Iterable[Argument]
) -> Iterator[Result]:
    """As `Executor.map`, which would read all arguments at once and keep all results. threads: of the pool."""
    running: deque[Future[Result]] = deque()
    try:
        for argument in arguments:
            running.append(pool.submit(function, argument))
            if len(running) > 2 * threads:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:
        for future in running:
            future.cancel()
