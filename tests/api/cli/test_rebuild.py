"""`annals rebuild` of a damaged log."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.support.console import Annals


def test_a_log_that_does_not_add_up_is_code_3(annals: Annals, folder: Path) -> None:
    # Proof: the rebuild fails with one line, and the read model stays as it was
    model = folder / "model.json"
    model.write_text('{"groups": {"dirs": {"singular": "dir"}}}')
    assert annals("import", model).code == 0
    before = annals("export").out
    with closing(sqlite3.connect("annals.db")) as connection, connection:
        connection.execute("UPDATE interaction SET state = zeroblob(32)")
    ended = annals("rebuild")
    assert ended.code == 3
    assert "position" in ended.err
    assert "\n" not in ended.err.strip()
    assert annals("export").out == before
