"""Verdicts of `buf breaking`, an independent program from npm, about changes of Protobuf documents."""

from __future__ import annotations

import json
import platform
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import pytest

from tests.support.downloads.npm import packages

VERSION: Final = "1.57.2"
_MACHINES: Final = {"x86_64": "x64", "aarch64": "aarch64", "arm64": "arm64", "AMD64": "x64"}
Rules = Literal["WIRE", "WIRE_JSON"]
#: Documents by their paths.
Tree = Mapping[str, str]


def breaking(pairs: Sequence[tuple[Tree, Tree]], rules: Rules) -> list[list[str]]:
    """Returns the rules that each change from older documents to newer ones violates.

    One process checks all changes, each as a separate module. Skips the test if the program is not available.
    Raises: CalledProcessError if it cannot read a document.
    """
    program = _program()
    with tempfile.TemporaryDirectory() as scratch:
        for side, name in enumerate(("older", "newer")):
            for number, pair in enumerate(pairs):
                for path, text in pair[side].items():
                    place = Path(scratch, name, f"p{number}", path)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_text(text)
            modules = [{"path": f"p{number}"} for number in range(len(pairs))]
            config = {"version": "v2", "modules": modules, "breaking": {"use": [rules]}}
            Path(scratch, name, "buf.yaml").write_text(json.dumps(config))
        call: list[str | Path] = [program, "breaking", "newer", "--against", "older", "--error-format", "json"]
        done = subprocess.run(call, cwd=scratch, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 100):
        raise subprocess.CalledProcessError(done.returncode, call, done.stdout, done.stderr)
    found: list[set[str]] = [set() for _ in pairs]
    for line in done.stdout.splitlines():
        violation = json.loads(line)
        module = Path(violation["path"]).parts[1]
        found[int(module.removeprefix("p"))].add(violation["type"])
    return [sorted(each) for each in found]


def _program() -> Path:
    home = packages(f"@bufbuild/buf@{VERSION}")
    machine = f"{platform.system().lower()}-{_MACHINES.get(platform.machine(), '')}"
    found = home / "node_modules" / "@bufbuild" / f"buf-{machine}" / "bin" / "buf"
    if not found.exists():
        pytest.skip(f"no buf for this machine ({machine}): npm install @bufbuild/buf")
    return found
