"""README's tour does what it says: its commands run against a served registry, and their outputs are compared."""

from __future__ import annotations

from pathlib import Path

from tests.support.guides import following
from tests.support.serving import ROOT


def test_the_tour(tmp_path: Path) -> None:
    tour = (ROOT / "README.md").read_text().split("## A tour")[1].split("\n## ")[0]
    assert tour.count("make run") == 2
    with following(tour, tmp_path) as guide:
        guide.follow()
