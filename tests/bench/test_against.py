"""A version passes if it is slower by at most 5 %, or by at most as much as the control runs differ."""

from __future__ import annotations

import pytest

from bench.against import Rates, figure
from bench.client import WORKLOADS


@pytest.mark.parametrize(
    ("now", "again", "met"),
    [
        ([100.0] * 5, [100.0] * 5, True),
        ([96.0] * 5, [96.0] * 5, True),
        ([90.0] * 5, [90.0] * 5, False),
        ([90.0] * 5, [78.0, 80.0, 90.0, 100.0, 102.0], True),  # the control runs differ by more
        ([300.0, 90.0, 90.0, 90.0, 20.0], [300.0, 90.0, 90.0, 90.0, 20.0], False),  # outliers do not count
    ],
)
def test_a_figure_may_be_worse_by_chance_only(now: list[float], again: list[float], met: bool) -> None:
    rounds = [Rates(100.0, *each) for each in zip(now, again, strict=True)]
    assert figure(WORKLOADS[0], "SQLite", rounds).met is met
