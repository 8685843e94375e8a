"""Servers of any make compared: the same requests to each, from a client process, in rounds that take turns.

Each server has to speak the xRegistry HTTP API at its URL, and to have the Group type `schemagroups` with the Resource
type `schemas`, as in the specification of schema registries. The measurement writes to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.pool import Pool
from statistics import median
from typing import Final

from bench import client
from bench.client import workloads
from bench.figures import Figure, Want

_ROUNDS: Final = 5
_SECONDS: Final = 2.0


def measure(urls: Sequence[str], work: str, quick: bool) -> Iterator[Figure]:
    """Entities a second of each server; the floor of the others is the first server. work: see `workloads`."""
    rounds, seconds = (1, 0.3) if quick else (_ROUNDS, _SECONDS)
    with get_context("spawn").Pool(1) as pool:
        for url in urls:
            pool.apply(client.prepare, (url,))
        starts = dict.fromkeys(urls, 0)
        for number, workload in workloads(work):
            found: dict[str, list[float | str]] = {url: [] for url in urls}
            for _ in range(rounds):
                for url in urls:
                    found[url].append(_rate(pool, url, number, starts, seconds))
            yield from (_figure(workload.name, url, found[url], found[urls[0]]) for url in urls)


def _rate(pool: Pool, url: str, number: int, starts: dict[str, int], seconds: float) -> float | str:
    """The rate of one round, or why there is none."""
    try:
        rate, starts[url] = pool.apply(client.rate, (url, number, starts[url], seconds))
    except RuntimeError as error:
        starts[url] += 1000  # what was sent may have been written
        return str(error)
    return rate


def _figure(what: str, url: str, rates: Sequence[float | str], first: Sequence[float | str]) -> Figure:
    measured, base = _middle(rates), _middle(first)
    errors = {rate for rate in rates if isinstance(rate, str)}
    ratio = measured / base if measured and base else 0.0
    shown = f"{measured:,.0f}/s" if measured else "; ".join(sorted(errors))
    return Figure(what, url, f"{len(rates)} rounds", shown, f"{base:,.0f}/s", ratio, Want.AT_LEAST, None, " x")


def _middle(rates: Sequence[float | str]) -> float:
    return median([rate for rate in rates if isinstance(rate, float)] or [0.0])
