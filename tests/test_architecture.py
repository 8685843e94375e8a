"""Imports point one way, no files and no rooms import each other in a circle, and a class name stands for one thing.

domain <- commands <- projections <- api; spark_projections uses domain and projections.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
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
PURE = {"pydantic", "pydantic_core", "orjson"}
#: Modules through which the domain would reach a clock, chance, a file or a network.
IMPURE = {
    *("asyncio", "http", "os", "pathlib", "random", "secrets", "socket", "sqlite3", "subprocess"),
    *("tempfile", "threading", "time", "urllib.request", "uuid"),
}


def modules(room: str) -> Iterator[Path]:
    return (ROOT / room).rglob("*.py")


def imports(file: Path) -> Iterator[str]:
    """The name of each module that a file imports, wherever in the file it does; a room's without `annals.`."""
    return (name.removeprefix("annals.") for name in absolute_imports(file))


def absolute_imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative imports hide which room they point to"
            yield node.module or ""


def test_annals_is_the_one_import_name() -> None:
    """A module that is imported by two names exists twice, with two sets of classes."""
    for room in (*INNER, "tests", "bench"):
        for file in modules(room):
            assert [name for name in absolute_imports(file) if name.split(".")[0] in INNER] == [], file


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
        assert known or file.startswith(("domain/formats/", "domain/confluent/")), f"{file} imports {name}"


def test_the_core_is_synchronous() -> None:
    for room in ("domain", "commands"):
        assert [file for file, name in crossings(room) if name.split(".")[0] == "asyncio"] == []


def test_nothing_outside_the_tests_imports_them() -> None:
    for room in INNER:
        assert [found for found in crossings(room) if found[1].split(".")[0] in ("tests", "bench", "pytest")] == []


#: Entries at the top of a room, `__init__.py` left out.
MOST_ENTRIES = 18


@cache
def files() -> Mapping[str, Path]:
    """The product's files by dotted name, a package by that of its folder."""
    found = {}
    for room in INNER:
        for file in modules(room):
            found[".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")] = file
    return found


def named(file: Path) -> Iterator[str]:
    """The files that a file imports, also where they are named as members of their package."""
    for node in ast.walk(ast.parse(file.read_text())):
        wanted: Iterable[str] = ()
        if isinstance(node, ast.Import):
            wanted = [alias.name.removeprefix("annals.") for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            module = node.module.removeprefix("annals.")
            members = [f"{module}.{alias.name}" for alias in node.names]
            inner = [name for name in members if name in files()]
            wanted = inner if len(inner) == len(members) else [module, *inner]
        yield from (name for name in wanted if name in files())


def room_of(name: str) -> str:
    """The room that a file is in: the folder below the top one, or the file itself where it is in none."""
    parts = name.split(".")
    return ".".join(parts[:2])


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """Members of one circle; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_files_import_each_other_in_a_circle() -> None:
    own = {name: file for name, file in files().items() if file.name != "__init__.py"}
    assert circle({name: {found for found in named(file) if found in own} - {name} for name, file in own.items()}) == []


def test_no_rooms_import_each_other_in_a_circle() -> None:
    graph = defaultdict[str, set[str]](set)
    for name, file in files().items():
        if "." in name:
            graph[room_of(name)] |= {room_of(found) for found in named(file) if "." in found} - {room_of(name)}
    assert circle(graph) == []


def test_rooms_have_few_entries_and_say_what_belongs_there() -> None:
    for room in INNER:
        entries = [found for found in (ROOT / room).iterdir() if not found.name.startswith("_")]
        assert len(entries) <= MOST_ENTRIES, f"{room}/ has {len(entries)} entries"
    for name, file in files().items():
        if file.name == "__init__.py":
            assert ast.get_docstring(ast.parse(file.read_text())), f"{name} does not say what belongs there"


def test_folders_of_tests_are_those_of_the_product() -> None:
    tests = ROOT / "tests"
    for file in tests.rglob("test_*.py"):
        folder = file.parent.relative_to(tests)
        assert folder.parts[:1] not in {(room,) for room in INNER} or (ROOT / folder).is_dir(), f"no {folder}/"
        says = (file.parent / "__init__.py").read_text() if (file.parent / "__init__.py").exists() else ""
        assert ast.get_docstring(ast.parse(says)), f"tests/{folder}/ does not say what is in it"


def test_a_class_name_stands_for_one_thing() -> None:
    defined = defaultdict[str, list[str]](list)
    for name, file in files().items():
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef):
                defined[node.name].append(name)
    assert {name: found for name, found in defined.items() if len(found) > 1} == {}


#: Where callers get their roles; elsewhere in api/, a caller is asked what it may do.
MAKES_CALLERS = ("api/auth/", "api/cli/", "api/subscriptions/owner_rights.py", "api/subscriptions/endpoint.py")


def test_routes_compare_no_roles() -> None:
    # ACC-70: one function decides a command, and `Caller` says what one sees
    compared = [
        f"{name}: {ast.unparse(node)}"
        for name, file in files().items()
        if name.startswith("api.") and not str(file.relative_to(ROOT)).startswith(MAKES_CALLERS)
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute)
        and (
            (node.attr in ("role", "groups", "role_at") and ast.unparse(node.value).split(".")[-1] == "caller")
            or ast.unparse(node.value) == "Role"
        )
    ]
    assert compared == []
