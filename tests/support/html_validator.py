"""The Nu Html Checker, which reports violations of the HTML standard."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.support.downloads.maven import java
from tests.support.downloads.npm import packages

_PACKAGE: Final = "vnu-jar@26.9.27"


#: The checker recurses deeply; the default stack may be too small.
_OPTIONS: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", "-Xss8m", "-Dfile.encoding=UTF-8")


def validate(pages: Mapping[str, str], folder: Path) -> list[str]:
    """The errors of pages: the name of the page, the message, and the invalid text. folder: for the HTML files.

    Skips the test if there is no Java, or npm cannot download the checker.
    """
    checker = packages(_PACKAGE) / "node_modules" / "vnu-jar" / "build" / "dist" / "vnu.jar"
    files = {folder / f"{number}.html": name for number, name in enumerate(pages)}
    for file, name in files.items():
        file.write_text(pages[name], encoding="utf-8")
    output = ("--format", "json", "--stdout", "--exit-zero-always")
    done = subprocess.run([java(), *_OPTIONS, "-jar", checker, *output, *files], capture_output=True, check=True)
    names = {file.name: name for file, name in files.items()}
    return [
        f"{names[Path(each['url']).name]}: {each['message']} In {each.get('extract', '')!r}"
        for each in json.loads(done.stdout)["messages"]
    ]
