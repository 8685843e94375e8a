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
from tests.support.serving import annals, environment

pytestmark = pytest.mark.uses("Spark")

MODEL = '{"groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file"}}}}}'
#: Small, because other tests run beside it.
SPARK = {"ANNALS_SPARK_MASTER": "local[1]", "ANNALS_SPARK_MEMORY": "700m"}


@pytest.fixture(params=["segments", "postgres"])
def source(request: pytest.FixtureRequest) -> str:
    """Where Spark reads the log."""
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
        # P-14: a rebuild that is killed shows nothing of itself, and the next one removes what it left
        settings["TMPDIR"] = str(tmp_path)
        killed(tmp_path, "annals-rebuild-*/stage/leaves", *where, **settings)
        assert annals("export", cwd=tmp_path, **settings).stdout == before
    ended = annals("rebuild", "--engine", "spark", *where, cwd=tmp_path, **settings, **{LINE_SECONDS: "0"})
    if ended.returncode == 2 and "Java" in ended.stderr:
        pytest.skip(ended.stderr)
    assert ended.returncode == 0, ended.stderr
    assert "events in" in ended.stdout
    assert re.search(r"^annals: computed [1-9]\d* Spark tasks", ended.stderr, re.MULTILINE)
    # PostgreSQL's rows are inserted by Spark's tasks
    loaded = re.search(r"^annals: loaded [1-9]\d* rows", ended.stderr, re.MULTILINE)
    assert (loaded is not None) == database.startswith("sqlite")
    assert [*tmp_path.glob("annals-rebuild-*")] == []
    assert annals("export", cwd=tmp_path, **settings).stdout == before
    assert annals("log", "verify", cwd=tmp_path, **settings).returncode == 0


def killed(home: Path, moment: str, *where: str, **settings: str) -> None:
    """A rebuild that is killed, with its Java, as soon as a file is there. Skips the test where there is no Java."""
    command = [sys.executable, "-m", "annals", "rebuild", "--engine", "spark", *where]
    process = subprocess.Popen(
        command, cwd=home, env=environment(**settings), stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while not [*home.glob(moment)]:
        if process.poll() is not None:
            said = process.communicate()[1]
            assert "Java" in said, said
            pytest.skip(said)
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert [*home.glob(moment)]


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
