"""Imports point one way, there are no import cycles between files or folders, and class names are unique.

domain <- commands <- projections <- api; spark_projections uses domain and projections. A "room" is one of these
top-level folders, or a folder directly below one.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.support.source_trees import parse

ROOT = Path(__file__).resolve().parents[1]

#: The other rooms that each room may import from.
INNER = {
    "domain": set(),
    "commands": {"domain"},
    "projections": {"domain", "commands"},
    "spark_projections": {"domain", "projections"},
    "api": {"domain", "commands", "projections"},
}
#: Packages that the domain may import in addition to the standard library; formats/ may also import parsers of schemas.
PURE = {"pydantic", "pydantic_core", "orjson"}
#: Modules that would give the domain access to a clock, randomness, files or the network.
IMPURE = {
    *("asyncio", "http", "os", "pathlib", "random", "secrets", "socket", "sqlite3", "subprocess"),
    *("tempfile", "threading", "time", "urllib.request", "uuid"),
}


def modules(room: str) -> Iterator[Path]:
    return (ROOT / room).rglob("*.py")


def imports(file: Path) -> Iterator[str]:
    """The names of modules that a file imports, anywhere in the file, without the prefix `annals.`."""
    return (name.removeprefix("annals.") for name in absolute_imports(file))


def absolute_imports(file: Path) -> Iterator[str]:
    for node in ast.walk(parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative imports hide which room they point to"
            yield node.module or ""


def test_annals_is_the_one_import_name() -> None:
    """A module that is imported by two names is loaded twice, with two sets of classes."""
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
    if room == "api":  # the console imports Spark's part inside the verbs that need it
        wrong = [
            (file, name)
            for file, name in wrong
            if not (file.startswith("api/cli/") and "spark" in file and name.startswith("spark"))
        ]
    assert wrong == []


#: Runs the Protobuf compiler, which reads and writes files. It is the only file of the domain with side effects.
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


#: The largest number of entries at the top of a room, without those that begin with `_`.
MOST_ENTRIES = 18


@cache
def files() -> Mapping[str, Path]:
    """The product's files by dotted module name; `__init__.py` has the name of its package."""
    found = {}
    for room in INNER:
        for file in modules(room):
            found[".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")] = file
    return found


def named(file: Path) -> Iterator[str]:
    """The product's files that a file imports, including submodules imported as members of their package."""
    for node in ast.walk(parse(file.read_text())):
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
    """The second-level folder of a file, or the file itself if it is directly in a top-level folder."""
    parts = name.split(".")
    return ".".join(parts[:2])


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """The members of an import cycle; empty if there is none."""
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
            assert ast.get_docstring(parse(file.read_text())), f"{name} does not say what belongs there"


def test_rooms_begin_with_files_that_exist() -> None:
    """What a docstring names after "Begin with", in that sentence, is in its folder or below the root."""
    wrong = []
    for file in files().values():
        says = ast.get_docstring(parse(file.read_text())) if file.name == "__init__.py" else None
        for sentence in re.findall(r"Begin with\b(.*?)\.(?:\s|\Z)", says or "", re.DOTALL):
            names = re.findall("`([^`]+)`", sentence)
            assert names, f"{file}: {sentence}"
            wrong += [
                (str(file), name)
                for name in names
                if not any((folder / name).exists() for folder in (file.parent, ROOT))
            ]
    assert wrong == []


def test_folders_of_tests_are_those_of_the_product() -> None:
    tests = ROOT / "tests"
    for file in tests.rglob("test_*.py"):
        folder = file.parent.relative_to(tests)
        assert folder.parts[:1] not in {(room,) for room in INNER} or (ROOT / folder).is_dir(), f"no {folder}/"
        says = (file.parent / "__init__.py").read_text() if (file.parent / "__init__.py").exists() else ""
        assert ast.get_docstring(parse(says)), f"tests/{folder}/ does not say what is in it"


def test_a_class_name_stands_for_one_thing() -> None:
    defined = defaultdict[str, list[str]](list)
    for name, file in files().items():
        for node in parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef):
                defined[node.name].append(name)
    assert {name: found for name, found in defined.items() if len(found) > 1} == {}


#: The files that assign roles to callers. Other files of api/ may use only the methods of `Caller` and `decide`.
MAKES_CALLERS = ("api/auth/", "api/cli/", "api/subscriptions/owner_rights.py", "api/subscriptions/endpoint.py")


def test_routes_compare_no_roles() -> None:
    # ACC-70: one function decides on commands, and `Caller` decides what a caller sees
    compared = [
        f"{name}: {ast.unparse(node)}"
        for name, file in files().items()
        if name.startswith("api.") and not str(file.relative_to(ROOT)).startswith(MAKES_CALLERS)
        for node in ast.walk(parse(file.read_text()))
        if isinstance(node, ast.Attribute)
        and (
            (node.attr in ("role", "groups", "role_at") and ast.unparse(node.value).split(".")[-1] == "caller")
            or ast.unparse(node.value) == "Role"
        )
    ]
    assert compared == []
