"""Stores on both databases, and a folder for their segments."""

from __future__ import annotations

from pathlib import Path

import pytest

from projections.segments.folder import SegmentFolder, open_folder
from tests.projections.conftest import registry
from tests.stores import postgres_server, postgres_url, sqlite_url, store_url

__all__ = ["postgres_server", "postgres_url", "registry", "sqlite_url", "store_url"]


@pytest.fixture
def folder(tmp_path: Path) -> SegmentFolder:
    """A folder that is not there yet."""
    return open_folder(str(tmp_path / "segments"))
