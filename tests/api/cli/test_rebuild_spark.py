"""`annals rebuild --engine spark`, from segments on SQLite and by JDBC from PostgreSQL."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from annals.api.cli.progress import LINE_SECONDS
from tests.support.left_out import leave_out
from tests.support.serving import annals, environment

pytestmark = pytest.mark.uses("Spark")

MODEL = '{"groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file"}}}}}'
#: Small, because other tests run at the same time.
SPARK = {"ANNALS_SPARK_MASTER": "local[1]", "ANNALS_SPARK_MEMORY": "700m"}


@pytest.fixture(params=["segments", "postgres"])
def source(request: pytest.FixtureRequest) -> str:
    """The source from which Spark reads the log."""
    pytest.importorskip("pyspark")
    return str(request.param)


@pytest.mark.timeout(300)
@pytest.mark.long
def test_spark_makes_the_same_read_model(source: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/annals.db" if source == "segments" else request.getfixturevalue("postgres_url")
    (tmp_path / "model.json").write_text(MODEL)
    (tmp_path / "dirs.json").write_text('{"dirs": {"d1": {"files": {"f1": {"name": "é"}, "f2": {}}}, "d2": {}}}')
    settings = {"ANNALS_DATABASE": database, **SPARK}
    for name in ("model.json", "dirs.json"):
        assert annals("import", name, cwd=tmp_path, **settings).returncode == 0
    before = annals("export", cwd=tmp_path, **settings).stdout
    where = ["--from", source]
    if source == "segments":
        assert annals("segments", "write", "--folder", "lake", cwd=tmp_path, **settings).returncode == 0
        where += ["--folder", "lake"]
        # P-14: a killed rebuild does not change the read model, and the next rebuild removes its files
        settings["TMPDIR"] = str(tmp_path)
        kill_rebuild(tmp_path, "annals-rebuild-*/stage/leaves", *where, **settings)
        assert annals("export", cwd=tmp_path, **settings).stdout == before
    ended = annals("rebuild", "--engine", "spark", *where, cwd=tmp_path, **settings, **{LINE_SECONDS: "0"})
    if ended.returncode == 2 and "Java" in ended.stderr:
        pytest.skip(ended.stderr)
    assert ended.returncode == 0, ended.stderr
    assert "events in" in ended.stdout
    assert re.search(r"^annals: computed [1-9]\d* Spark tasks", ended.stderr, re.MULTILINE)
    # on PostgreSQL, Spark's tasks insert the rows themselves
    loaded = re.search(r"^annals: loaded [1-9]\d* rows", ended.stderr, re.MULTILINE)
    assert (loaded is not None) == database.startswith("sqlite")
    assert [*tmp_path.glob("annals-rebuild-*")] == []
    assert annals("export", cwd=tmp_path, **settings).stdout == before
    assert annals("log", "verify", cwd=tmp_path, **settings).returncode == 0


def kill_rebuild(home: Path, pattern: str, *where: str, **settings: str) -> None:
    """Starts a rebuild, and kills it with its Java once a file matches `pattern`. Skips the test without Java."""
    command = [sys.executable, "-m", "annals", "rebuild", "--engine", "spark", *where]
    process = subprocess.Popen(
        command, cwd=home, env=environment(**settings), stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while not [*home.glob(pattern)]:
        if process.poll() is not None:
            errors = process.communicate()[1]
            assert "Java" in errors, errors
            leave_out(errors)
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert [*home.glob(pattern)]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--as-of", "3"], "--engine spark"),
        (["--engine", "spark", "--from", "postgres"], "needs a PostgreSQL store"),
        (["--engine", "spark", "--from", "segments"], "needs --folder"),
        (["--engine", "spark", "--from", "kafka"], "needs --kafka"),
    ],
)
def test_missing_requirements_are_reported(options: list[str], says: str, tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text(MODEL)
    assert annals("import", "model.json", cwd=tmp_path).returncode == 0
    ended = annals("rebuild", *options, cwd=tmp_path, **SPARK)
    assert (ended.returncode, says in ended.stderr) == (2, True), ended.stderr
