"""The definition of `defaultversionsticky` in a type holds for each request that moves the default (ENT-82)."""

from __future__ import annotations

from typing import Any

import pytest

from annals.domain.decisions.commands import Command, DeleteEntities, WriteMethod, WriteTree
from annals.domain.errors.problems import InvalidAttribute
from tests.support.registries.memory import MemoryRegistry

FILE = "/dirs/d/files/f"
TWO = WriteTree(f"{FILE}/versions", {"v1": {}, "v2": {}}, WriteMethod.POST)

#: Definitions of the attribute in models: as in the specification, with one allowed value, read-only, true by default.
TYPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "always": {"enum": [True], "default": True},
    "never": {"enum": [False], "default": False},
    "fixed on": {"readonly": True, "default": True},
    "fixed off": {"readonly": True},
    "on": {"default": True},
}
REFUSED = None


def write(xid: str, tree: dict[str, Any], method: WriteMethod = WriteMethod.PUT, flag: str | None = None) -> Command:
    return WriteTree(xid, tree, method, setdefaultversionid=flag)


#: By case: the requests before, the request, and by type the default Version and whether it is sticky.
ROWS: dict[str, tuple[list[Command], Command, dict[str, tuple[str, bool] | None]]] = {
    **{
        f"creation by {name}": (
            [],
            command,
            {
                "plain": ("1", False),
                "always": ("1", True),
                "never": ("1", False),
                "fixed on": ("1", True),
                "fixed off": ("1", False),
                "on": ("1", True),
            },
        )
        for name, command in {
            "PUT": write(FILE, {}),
            "PATCH": write(FILE, {}, WriteMethod.PATCH),
            "POST": write(FILE, {}, WriteMethod.POST),
            "its collection": write("/dirs/d/files", {"f": {}}, WriteMethod.POST),
            "its Group": write("/dirs/d", {"files": {"f": {}}}),
            "its meta": write(f"{FILE}/meta", {}),
            "a meta in it": write(FILE, {"meta": {}}),
            "a Version": write(f"{FILE}/versions/1", {}),
            "its Versions": write(f"{FILE}/versions", {"1": {}}, WriteMethod.POST),
        }.items()
    },
    "creation with the flag": (
        [],
        write(FILE, {}, flag="1"),
        {
            "plain": ("1", True),
            "always": ("1", True),
            "never": REFUSED,
            "fixed on": ("1", True),
            "fixed off": ("1", False),
            "on": ("1", True),
        },
    ),
    "creation with the flag as null": (
        [],
        write(FILE, {}, flag="null"),
        {
            "plain": ("1", False),
            "always": REFUSED,
            "never": ("1", False),
            "fixed on": ("1", True),
            "fixed off": ("1", False),
            "on": ("1", False),
        },
    ),
    **{
        f"{name} names a Version": (
            [TWO],
            command,
            {
                "plain": ("v1", True),
                "always": ("v1", True),
                "never": REFUSED,
                "fixed on": ("v1", True),
                "fixed off": ("v2", False),
                "on": ("v1", True),
            },
        )
        for name, command in {
            "the flag": write(f"{FILE}/meta", {}, WriteMethod.PATCH, "v1"),
            "the flag of a deletion": DeleteEntities(f"{FILE}/versions", {}, setdefaultversionid="v1"),
            "a patch": write(f"{FILE}/meta", {"defaultversionid": "v1"}, WriteMethod.PATCH),
        }.items()
    },
    **{
        f"{name} names none": (
            [TWO],
            command,
            {
                "plain": ("v2", False),
                "always": always,
                "never": ("v2", False),
                "fixed on": ("v2", True),
                "fixed off": ("v2", False),
                "on": on,
            },
        )
        for name, command, always, on in (
            ("the flag", write(f"{FILE}/meta", {}, WriteMethod.PATCH, "null"), REFUSED, ("v2", False)),
            (
                "a patch",
                write(f"{FILE}/meta", {"defaultversionid": None}, WriteMethod.PATCH),
                ("v2", True),
                ("v2", True),
            ),
        )
    },
    "the default Version goes": (
        [TWO],
        DeleteEntities(f"{FILE}/versions/v2"),
        {
            "plain": ("v1", False),
            "always": ("v1", True),
            "never": ("v1", False),
            "fixed on": ("v1", True),
            "fixed off": ("v1", False),
            "on": ("v1", True),
        },
    ),
    "a Version comes": (
        [TWO],
        write(f"{FILE}/versions/v3", {}),
        {
            "plain": ("v3", False),
            "always": ("v2", True),
            "never": ("v3", False),
            "fixed on": ("v2", True),
            "fixed off": ("v3", False),
            "on": ("v2", True),
        },
    ),
}


@pytest.mark.parametrize(
    ("given", "when", "type", "then"),
    [
        pytest.param(given, when, type, expected, id=f"{name}, {type}")
        for name, (given, when, outcomes) in ROWS.items()
        for type, expected in outcomes.items()
    ],
)
def test_the_type_decides_what_may_be_sticky(
    given: list[Command], when: Command, type: str, then: tuple[str, bool] | None
) -> None:
    # ENT-15, ENT-81 to 83, FLAG-41: an enum refuses a value, readonly drops it, the default holds if no value is sent
    attribute = {"type": "boolean", "required": True, "default": False, **TYPES[type]}
    files = {"singular": "file", "hasdocument": False, "metaattributes": {"defaultversionsticky": attribute}}
    made = MemoryRegistry({"groups": {"dirs": {"singular": "dir", "resources": {"files": files}}}})
    for command in given:
        made.do(command)
    if then is None:
        with pytest.raises(InvalidAttribute) as problem:
            made.do(when)
        named = problem.value.subject, problem.value.arguments["name"]
        assert named == (f"{FILE}/meta", "defaultversionsticky")
        return
    made.do(when)
    meta = made.meta(FILE)
    assert (meta["defaultversionid"], meta["defaultversionsticky"]) == then
