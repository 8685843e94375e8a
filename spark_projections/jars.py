"""The jars of the connectors through which Spark reads databases and brokers, and their download.

The versions are tested as one set with the PySpark that `annals[spark]` installs. Only these files are downloaded;
their other dependencies are among Spark's own jars.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

import pyspark

from spark_projections.java import cache_folder, java_home

#: Maven coordinates of each connector. Kafka's has the minor release of PySpark, but not always the same patch.
CONNECTORS: Final[dict[str, tuple[str, ...]]] = {
    "kafka": (
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
        "org.apache.kafka:kafka-clients:3.9.0",
        "org.apache.commons:commons-pool2:2.12.0",
    ),
    "postgres": ("org.postgresql:postgresql:42.7.8",),
}


class MissingJars(Exception):
    """Some jars are not available; the message names them, and says what to do."""


def connector_jars(connectors: Iterable[str], folder: str | None = None, java: str | None = None) -> list[Path]:
    """The jars of the named connectors: from a folder, else downloaded from Maven Central once and cached.

    folder: must hold every artifact, in any version; all of its jars are returned. java: see `java_home`.
    Raises: MissingJars, MissingJava.
    """
    coordinates = [each for name in connectors for each in CONNECTORS[name]]
    if folder is not None:
        return _jars_in(Path(folder), coordinates)
    if not coordinates:
        return []
    home = cache_folder("spark", hashlib.sha256("\n".join(coordinates).encode()).hexdigest()[:16])
    if not home.exists():
        _download(coordinates, home, java)
    return sorted(home.glob("*.jar"))


def _jars_in(folder: Path, coordinates: Sequence[str]) -> list[Path]:
    missing = [each for each in coordinates if not any(folder.glob(f"{each.split(':')[1]}-[0-9]*.jar"))]
    if missing:
        raise MissingJars(f"the folder {folder} has no jar of {', '.join(missing)}")
    return sorted(folder.glob("*.jar"))


def _download(coordinates: Sequence[str], home: Path, java: str | None) -> None:
    """Downloads with the Ivy that Spark contains, so the machine needs no Maven."""
    home.parent.mkdir(parents=True, exist_ok=True)
    # Downloaded next to its place and then moved there as a whole, because several processes may download at once.
    with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
        module, brought = Path(scratch, "ivy.xml"), Path(scratch, "jars")
        module.write_text(_module(coordinates), encoding="utf-8")
        spark = Path(pyspark.__file__).parent / "jars" / "*"
        # A separate cache: in shared ones, Ivy accepts a description whose jar is missing.
        ivy = [java_home(java) / "bin" / "java", "-cp", spark, "org.apache.ivy.Main", "-cache", Path(scratch, "cache")]
        command = [*ivy, "-ivy", module, "-retrieve", f"{brought}{os.sep}[artifact]-[revision].[ext]"]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        if done.returncode or len(list(brought.glob("*.jar"))) < len(coordinates):
            missing = [each for each in coordinates if "{}#{};{}: not found".format(*each.split(":")) in said]
            raise MissingJars(
                f"Maven Central did not deliver {', '.join(missing or coordinates)} ({_last_words(said)});"
                " set ANNALS_SPARK_JARS to a folder with the jars"
            )
        if not home.exists():
            brought.rename(home)


def _module(coordinates: Sequence[str]) -> str:
    names = [dict(zip(("org", "name", "rev"), each.split(":"), strict=True)) for each in coordinates]
    rows = [" ".join(f"{key}={quoteattr(value)}" for key, value in each.items()) for each in names]
    wanted = "".join(f'<dependency {row} conf="default->master" transitive="false"/>' for row in rows)
    return (
        '<ivy-module version="2.0"><info organisation="annals" module="connectors"/>'
        f'<configurations><conf name="default"/></configurations><dependencies>{wanted}</dependencies></ivy-module>'
    )


def _last_words(output: str) -> str:
    lines = [line.strip(" \t:") for line in output.splitlines() if "not found" in line or "ERROR" in line]
    return lines[-1][:300] if lines else "it does not say why"
