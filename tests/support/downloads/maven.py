"""Java for tests against an independent implementation: artifacts from Maven, and a JVM that answers questions.

`mvn` downloads artifacts once. They stay below the user's cache directory, so later runs need neither Maven nor a
network. If something is missing, the test is skipped, and its message says how to get it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from xml.sax.saxutils import escape

from tests.support.left_out import leave_out

_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:2.8"
_COORDINATE = re.compile(
    r"(?P<group>[^:@]+):(?P<artifact>[^:@]+):(?P<version>[^:@]+)(:(?P<classifier>[^:@]+))?(?P<alone>@jar)?"
)
_NO_MAVEN = "no Maven: apt-get install maven, or put mvn on PATH"
_NO_JAVA = "no Java development kit 17 or newer: apt-get install openjdk-17-jdk-headless, or put its java on PATH"


def jars(*coordinates: str) -> list[Path]:
    """The files of artifacts, each named `group:artifact:version`, and of their dependencies at run time.

    `group:artifact:version@jar` is that file without dependencies: for artifacts whose POM cannot be resolved. A
    classifier can follow the version, after a colon.
    Skips the test if there is no Maven, or it cannot download them.
    """
    home = _cache() / hashlib.sha256("\n".join(coordinates).encode()).hexdigest()[:16]
    if not home.exists():
        _download(coordinates, home)
    return sorted(home.glob("*.jar"))


def unpacked(coordinate: str) -> Path:
    """The folder with the content of an archive, named `group:artifact:version:tar.gz:classifier`.

    Skips the test if there is no Maven, or it cannot download the archive.
    """
    home = _cache() / hashlib.sha256(coordinate.encode()).hexdigest()[:16]
    if not home.exists():
        with _new_folder(home) as folder:
            _run_maven(f"{_PLUGIN}:copy", f"-Dartifact={coordinate}", f"-DoutputDirectory={folder}", brings=coordinate)
            (archive,) = folder.iterdir()
            shutil.unpack_archive(archive, folder, filter="data")
            archive.unlink()
    return home


def java() -> Path:
    """The `java` on PATH, if it can run a source file. Skips the test otherwise."""
    found = shutil.which("java")
    if found is None:
        leave_out(_NO_JAVA)
    modules = subprocess.run([found, "--list-modules"], capture_output=True, text=True, check=False).stdout
    if "jdk.compiler@" not in modules:
        leave_out(_NO_JAVA)
    return Path(found)


class Checker:
    """A JVM that runs one Java source file and answers one JSON line with another, until it is closed."""

    def __init__(self, source: Path, coordinates: Sequence[str]) -> None:
        classpath = os.pathsep.join(map(str, jars(*coordinates)))
        # A file, because a pipe that is not read would fill up. `close` closes it.
        self._complaints = tempfile.TemporaryFile("w+")  # noqa: SIM115
        # Several processes share the machine: small heap, serial collector, only one compiler.
        options = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8"]
        self._process = subprocess.Popen(
            [java(), *options, "-cp", classpath, source],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            encoding="utf-8",
        )

    def ask(self, question: Mapping[str, Any]) -> Any:
        """The answer to one question. Raises: RuntimeError with the JVM's error output if the JVM ended."""
        requests, answers = self._pipe(self._process.stdin), self._pipe(self._process.stdout)
        try:
            requests.write(json.dumps(question) + "\n")
            requests.flush()
            line = answers.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._complaints.seek(0)
            raise RuntimeError(self._complaints.read())
        return json.loads(line)

    def close(self) -> None:
        """Ends the JVM, which stops at the end of its input."""
        self._pipe(self._process.stdin).close()
        self._process.wait()
        self._pipe(self._process.stdout).close()
        self._complaints.close()

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe


def _cache() -> Path:
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches, "annals", "maven")


def _download(coordinates: Sequence[str], home: Path) -> None:
    with _new_folder(home) as folder:
        project = folder.parent / "pom.xml"
        project.write_text(_project(coordinates, folder), encoding="utf-8")
        # `copy` fails if it has nothing to copy. It copies only the files without dependencies.
        copying = (f"{_PLUGIN}:copy",) if any(coordinate.endswith("@jar") for coordinate in coordinates) else ()
        goals = (f"{_PLUGIN}:copy-dependencies", *copying)
        _run_maven("-f", str(project), *goals, brings=", ".join(coordinates))


@contextmanager
def _new_folder(home: Path) -> Iterator[Path]:
    """A folder to fill, which becomes `home` at once, because several test processes may create it."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
        folder = Path(scratch, "files")
        yield folder
        if not home.exists():
            folder.rename(home)


def _run_maven(*arguments: str, brings: str) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        leave_out(_NO_MAVEN)
    done = subprocess.run([maven, "-q", "-B", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        leave_out(f"Maven cannot bring {brings}: {_first_error(done.stdout)}")


def _first_error(output: str) -> str:
    lines = [line for line in output.splitlines() if "ERROR" in line]
    return lines[0][:400] if lines else "it does not say why"


def _project(coordinates: Sequence[str], folder: Path) -> str:
    alone: list[str] = []
    whole: list[str] = []
    for coordinate in coordinates:
        match = _COORDINATE.fullmatch(coordinate)
        assert match, coordinate
        names = {"groupId": match["group"], "artifactId": match["artifact"], "version": match["version"]}
        if match["classifier"]:
            names["classifier"] = match["classifier"]
        fields = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in names.items())
        if match["alone"]:
            alone.append(f"<artifactItem>{fields}</artifactItem>")
        else:
            whole.append(f"<dependency>{fields}</dependency>")
    group, artifact, version = _PLUGIN.split(":")
    return f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion><groupId>annals</groupId><artifactId>tests</artifactId><version>1</version>
<dependencies>{"".join(whole)}</dependencies>
<build><plugins><plugin><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
<configuration><includeScope>runtime</includeScope>
<outputDirectory>{escape(str(folder))}</outputDirectory><artifactItems>{"".join(alone)}</artifactItems></configuration>
</plugin></plugins></build></project>"""
