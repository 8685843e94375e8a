"""docs/guides/segments.md: its tables name all columns and members. tests/docs runs its programs."""

from __future__ import annotations

import re

from annals.projections.segments.columns import DOCUMENT_FILE_SCHEMA, LOG_FILE_SCHEMA
from annals.projections.segments.manifest import DataFile, ManifestEntry
from tests.support.serving import ROOT

GUIDE = (ROOT / "docs" / "guides" / "segments.md").read_text()


def table(heading: str) -> list[str]:
    """All names in the first column of the first table below a heading."""
    below = GUIDE.split(heading)[1].split("\n|---")[1].split("\n\n")[0]
    return [name for row in below.splitlines()[1:] for name in re.findall(r"`(\w+)`", row.split("|")[1])]


def test_its_tables_name_every_column_and_member() -> None:
    assert table("## Columns") == LOG_FILE_SCHEMA.names
    assert all(f"`{name}` (" in GUIDE for name in DOCUMENT_FILE_SCHEMA.names)
    assert table("prints the entries:") == list(ManifestEntry.model_fields)
    files = GUIDE.split("| the files: ")[1].partition(";")[0]
    assert set(re.findall(r"`(\w+)`", files)) == set(DataFile.model_fields)
