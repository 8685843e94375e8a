"""`annals rebuild` of a damaged log."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

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


NEEDS_SPARK = {
    "a source": ("--from segments", "--from"),
    "the default source": ("--from postgres", "--from"),
    "a folder": ("--folder s", "--folder"),
    "brokers": ("--from kafka --kafka 127.0.0.1:9092 --prefix p", "--from, --kafka, --prefix"),
    "a position": ("--as-of 3", "--as-of"),
    "other folders": ("--stage s --events e", "--stage, --events"),
    "a hash": (f"--head 1:{'0' * 64}", "--head"),
}


@pytest.mark.parametrize(("words", "options"), NEEDS_SPARK.values(), ids=NEEDS_SPARK)
def test_options_of_spark_are_not_ignored(annals: Annals, folder: Path, words: str, options: str) -> None:
    (folder / "empty.json").write_text(json.dumps({"schemagroups": {}}))
    assert annals("import", "empty.json").code == 0
    ended = annals("rebuild", *words.split())
    said = f"annals: {options}: needs --engine spark; without it, the log of the database is read.\n"
    assert ended == (2, "", said)


def test_the_folder_of_the_settings_is_no_option(annals: Annals, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "empty.json").write_text(json.dumps({"schemagroups": {}}))
    assert annals("import", "empty.json").code == 0
    monkeypatch.setenv("ANNALS_SEGMENTS", "segments")
    assert annals("rebuild").code == 0
