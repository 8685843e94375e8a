"""docs/guides/segments.md: its programs run on a folder, and its tables name the members of files and entries."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from annals.projections.segments.columns import DOCUMENT_FILE_SCHEMA, LOG_FILE_SCHEMA
from annals.projections.segments.folder import open_folder
from annals.projections.segments.manifest import DataFile, ManifestEntry
from annals.projections.segments.write import SegmentSize, append_segments
from tests.support.registries.recorded import Registry
from tests.support.segment_logs import log_rows, record_interactions
from tests.support.serving import ROOT

GUIDE = (ROOT / "docs" / "guides" / "segments.md").read_text()


def table(heading: str) -> list[str]:
    """All names in the first column of the first table below a heading."""
    below = GUIDE.split(heading)[1].split("\n|---")[1].split("\n\n")[0]
    return [name for row in below.splitlines()[1:] for name in re.findall(r"`(\w+)`", row.split("|")[1])]


def test_its_programs_read_the_log(sqlite_url: str, tmp_path: Path) -> None:
    with Registry(sqlite_url) as registry:
        record_interactions(registry, 60)
        log = log_rows(registry.store.engine)
    append_segments(sqlite_url, open_folder(str(tmp_path / "segments")), SegmentSize(40))
    programs = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    printed = [
        subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        for program in programs
    ]
    arrow, pandas = printed
    assert arrow == f"{len(log) - 100}\n"
    assert re.search(r"^anonymous +60$", pandas, re.MULTILINE)


def test_its_tables_name_every_column_and_member() -> None:
    assert table("## Columns") == LOG_FILE_SCHEMA.names
    assert all(f"`{name}` (" in GUIDE for name in DOCUMENT_FILE_SCHEMA.names)
    assert table("prints the entries:") == list(ManifestEntry.model_fields)
    files = GUIDE.split("| the files: ")[1].partition(";")[0]
    assert set(re.findall(r"`(\w+)`", files)) == set(DataFile.model_fields)
