"""The jars of the connectors through which Spark reads databases and brokers and writes tables, and their download.

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

from annals.spark_projections.java import cache_folder, java_home

#: Maven coordinates of each connector. Kafka's has the minor release of PySpark, but not always the same patch.
CONNECTORS: Final[dict[str, tuple[str, ...]]] = {
    "kafka": (
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
        "org.apache.kafka:kafka-clients:3.9.0",
        "org.apache.commons:commons-pool2:2.12.0",
    ),
    "postgres": ("org.postgresql:postgresql:42.7.8",),
    "delta": ("io.delta:delta-spark_2.13:4.0.0", "io.delta:delta-storage:4.0.0"),
    "iceberg": ("org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",),
}


class MissingJars(Exception):
    """Some jars are not available; the message names them, and says what to do."""


def connector_jars(connectors: Iterable[str], folder: str | None = None, java: str | None = None) -> list[Path]:
    """The jars of the named connectors: from a folder, else downloaded from Maven Central once and cached.

    folder: must hold every artifact, in any version; all of its jars are returned. java: see `java_home`.
    Raises: MissingJars, MissingJava.
    """
    coordinates = [coordinate for name in connectors for coordinate in CONNECTORS[name]]
    if folder is not None:
        return _jars_in(Path(folder), coordinates)
    if not coordinates:
        return []
    cache_path = cache_folder("spark", hashlib.sha256("\n".join(coordinates).encode()).hexdigest()[:16])
    if not cache_path.exists():
        _download(coordinates, cache_path, java)
    return sorted(cache_path.glob("*.jar"))


def _jars_in(folder: Path, coordinates: Sequence[str]) -> list[Path]:
    missing = [
        coordinate for coordinate in coordinates if not any(folder.glob(f"{coordinate.split(':')[1]}-[0-9]*.jar"))
    ]
    if missing:
        raise MissingJars(f"the folder {folder} has no jar of {', '.join(missing)}")
    return sorted(folder.glob("*.jar"))


def _download(coordinates: Sequence[str], cache_path: Path, java: str | None) -> None:
    """Downloads with the Ivy that Spark contains, so the machine needs no Maven."""
    cache_path.parent.mkdir(parents=True, exist_ok=True)
    # Downloaded next to its place and then moved there as a whole, because several processes may download at once.
    with tempfile.TemporaryDirectory(dir=cache_path.parent) as temporary_folder:
        module, downloaded = Path(temporary_folder, "ivy.xml"), Path(temporary_folder, "jars")
        module.write_text(_ivy_module(coordinates), encoding="utf-8")
        spark = Path(pyspark.__file__).parent / "jars" / "*"
        # A separate cache: in shared ones, Ivy accepts a description whose jar is missing.
        ivy = [
            java_home(java) / "bin" / "java",
            "-cp",
            spark,
            "org.apache.ivy.Main",
            "-cache",
            Path(temporary_folder, "cache"),
        ]
        command = [*ivy, "-ivy", module, "-retrieve", f"{downloaded}{os.sep}[artifact]-[revision].[ext]"]
        process = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        output = process.stdout + process.stderr
        if process.returncode or len(list(downloaded.glob("*.jar"))) < len(coordinates):
            missing = [
                coordinate
                for coordinate in coordinates
                if "{}#{};{}: not found".format(*coordinate.split(":")) in output
            ]
            raise MissingJars(
                f"Maven Central did not deliver {', '.join(missing or coordinates)} ({_failure_text(output)});"
                " set ANNALS_SPARK_JARS to a folder with the jars"
            )
        if not cache_path.exists():
            downloaded.rename(cache_path)


def _ivy_module(coordinates: Sequence[str]) -> str:
    names = [dict(zip(("org", "name", "rev"), coordinate.split(":"), strict=True)) for coordinate in coordinates]
    rows = [" ".join(f"{key}={quoteattr(value)}" for key, value in coordinate.items()) for coordinate in names]
    dependencies = "".join(f'<dependency {row} conf="default->master" transitive="false"/>' for row in rows)
    return (
        '<ivy-module version="2.0"><info organisation="annals" module="connectors"/>'
        f'<configurations><conf name="default"/></configurations><dependencies>{dependencies}</dependencies>'
        "</ivy-module>"
    )


def _failure_text(output: str) -> str:
    lines = [line.strip(" \t:") for line in output.splitlines() if "not found" in line or "ERROR" in line]
    return lines[-1][:300] if lines else "it does not say why"
