"""CHANGELOG.md has the form of Keep a Changelog, and its newest release is the version of the package."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

import annals
from tests.support.serving import ROOT

TEXT: Final = (ROOT / "CHANGELOG.md").read_text()
KINDS: Final = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
_RELEASE: Final = re.compile(r"(\d+\.\d+\.\d+) - \d{4}-\d\d-\d\d")


def sections() -> dict[str, str]:
    """The text below each heading of the second level."""
    parts = re.split(r"^## (.*)$", TEXT, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def releases() -> list[str]:
    """The versions, newest first. The first section has the unreleased changes."""
    unreleased, *released = sections()
    assert unreleased == "Unreleased"
    found = [_RELEASE.fullmatch(heading) for heading in released]
    assert None not in found, f"a heading is not X.Y.Z - YYYY-MM-DD: {released}"
    return [match[1] for match in found if match]


def test_the_newest_release_is_the_version() -> None:
    assert releases()[:1] in ([annals.__version__], [])


def test_newer_releases_come_first() -> None:
    numbers = [tuple(map(int, version.split("."))) for version in releases()]
    assert all(newer > older for newer, older in pairwise(numbers))


def test_changes_are_sorted_by_kind() -> None:
    for heading, text in sections().items():
        kinds = re.findall(r"^### (.*)$", text, flags=re.MULTILINE)
        assert kinds == [kind for kind in KINDS if kind in kinds], heading


def test_each_change_is_an_item_of_a_list() -> None:
    for heading, text in sections().items():
        others = [line for line in text.splitlines() if line and not line.startswith(("### ", "- ", "  "))]
        assert others == [], heading
