"""Guides do what they say: their commands run against served registries, and their outputs are compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.guides import followed

#: Guides that assume a new registry at http://127.0.0.1:8080.
GUIDES = (
    "compare.md",
    "compat.md",
    "confluent.md",
    "formats.md",
    "history.md",
    "messages.md",
    "pages.md",
    "search.md",
    "subscriptions/README.md",
)


@pytest.mark.parametrize("page", GUIDES)
def test_a_guide(page: str, tmp_path: Path) -> None:
    with followed(f"guides/{page}", tmp_path) as guide:
        guide.serve()
        guide.follow()


def test_replication(tmp_path: Path) -> None:
    with followed("guides/replication.md", tmp_path) as guide:
        guide.follow()
