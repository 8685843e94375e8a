"""Servers are compared with each other, here two Annals servers: there is a row for each workload and server."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import peers
from bench.client import WORKLOADS
from tests.support.serving import serving


@pytest.mark.slow
def test_servers_are_compared(tmp_path: Path) -> None:
    with (
        serving(f"sqlite:///{tmp_path}/one.db", tmp_path) as one,
        serving(f"sqlite:///{tmp_path}/other.db", tmp_path) as other,
    ):
        figures = list(peers.measure([one.url, other.url], "Create", quick=True))
    names = [workload.name for workload in WORKLOADS if "Create" in workload.name]
    assert [(figure.what, figure.store) for figure in figures] == [
        (name, url) for name in names for url in (one.url, other.url)
    ]
    assert all(figure.measured.endswith("/s") and figure.ratio > 0 for figure in figures)
