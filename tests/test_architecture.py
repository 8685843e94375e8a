"""Imports point one way: domain <- commands <- projections <- api; spark_projections uses domain and projections."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

#: The rooms that each room may import from, itself left out.
INNER = {
    "domain": set(),
    "commands": {"domain"},
    "projections": {"domain", "commands"},
    "spark_projections": {"domain", "projections"},
    "api": {"domain", "commands", "projections"},
}
#: What the domain may import besides the standard library; formats/ may use libraries that parse a schema format.
PURE = {"pydantic", "pydantic_core", "orjson", "uritemplate"}
#: Modules through which the domain would reach a clock, chance, a file or a network.
IMPURE = {
    *("asyncio", "http", "os", "pathlib", "random", "secrets", "socket", "sqlite3", "subprocess"),
    *("tempfile", "threading", "time", "urllib.request", "uuid"),
}


def modules(room: str) -> Iterator[Path]:
    return (ROOT / room).rglob("*.py")


def imports(file: Path) -> Iterator[str]:
    """The absolute name of each module that a file imports, wherever in the file it does."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative imports hide which room they point to"
            yield node.module or ""


def crossings(room: str) -> Iterator[tuple[str, str]]:
    for file in modules(room):
        for name in imports(file):
            yield str(file.relative_to(ROOT)), name


@pytest.mark.parametrize("room", INNER)
def test_rooms_import_inwards_only(room: str) -> None:
    allowed = INNER[room] | {room}
    wrong = [
        (file, name) for file, name in crossings(room) if (top := name.split(".")[0]) in INNER and top not in allowed
    ]
    if room == "api":  # the console starts Spark, inside the verbs that need it
        wrong = [
            (file, name)
            for file, name in wrong
            if not (file.startswith("api/cli/") and "spark" in file and name.startswith("spark"))
        ]
    assert wrong == []


#: The compiler of Protobuf is a program that reads files and writes to a descriptor; nothing else of it is seen.
COMPILER = "domain/formats/protobuf/protoc.py"


def test_the_domain_is_pure() -> None:
    for file, name in crossings("domain"):
        top = name.split(".")[0]
        if file == COMPILER and top in ("os", "pathlib", "tempfile"):
            continue
        assert top not in IMPURE and name not in IMPURE, f"{file} imports {name}"
        known = top in sys.stdlib_module_names or top in PURE or top == "domain"
        assert known or file.startswith("domain/formats/"), f"{file} imports {name}"


def test_the_core_is_synchronous() -> None:
    for room in ("domain", "commands"):
        assert [file for file, name in crossings(room) if name.split(".")[0] == "asyncio"] == []


def test_nothing_outside_the_tests_imports_them() -> None:
    for room in INNER:
        assert [found for found in crossings(room) if found[1].split(".")[0] in ("tests", "bench", "pytest")] == []
