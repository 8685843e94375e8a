"""Creates the virtual environment for the Makefile: `python environment.py .venv`.

Some systems ship Python without `ensurepip`, which is in a separate package. There the script creates the environment
without pip, and installs pip with the machine's own pip or from PyPI, checked against the hash in the index.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import subprocess
import sys
import tempfile
import urllib.request
import venv
from pathlib import Path
from urllib.parse import urljoin

INDEX = "https://pypi.org/pypi/pip/json"


def main(place: str) -> None:
    complete = importlib.util.find_spec("ensurepip") is not None
    venv.create(place, with_pip=complete, clear=True)
    if not complete:
        bootstrap(str(Path(place, "bin", "python")))


def bootstrap(python: str) -> None:
    """Installs pip into the environment of an interpreter that has none."""
    with tempfile.TemporaryDirectory() as folder:
        if importlib.util.find_spec("pip") is not None:
            command = [sys.executable, "-m", "pip", "--python", python]
        else:
            command = [python, f"{download(Path(folder))}/pip"]
        subprocess.run([*command, "install", "--quiet", "pip"], check=True)


def download(folder: Path) -> Path:
    """The newest wheel of pip; it runs from inside its own archive."""
    with urllib.request.urlopen(INDEX) as answer:
        files = json.load(answer)["urls"]
    wheel = next(file for file in files if file["packagetype"] == "bdist_wheel")
    with urllib.request.urlopen(urljoin(INDEX, wheel["url"])) as answer:
        content = answer.read()
    if hashlib.sha256(content).hexdigest() != wheel["digests"]["sha256"]:
        sys.exit("pip was damaged on its way from the index; run make again")
    path = folder / wheel["filename"]
    path.write_bytes(content)
    return path


if __name__ == "__main__":
    main(sys.argv[1])
