"""A folder for segments; an outer conftest.py has the registries."""

from __future__ import annotations

from pathlib import Path

import pytest

from annals.projections.segments.folder import SegmentFolder, open_folder


@pytest.fixture
def folder(tmp_path: Path) -> SegmentFolder:
    """A folder that does not exist yet."""
    return open_folder(str(tmp_path / "segments"))
