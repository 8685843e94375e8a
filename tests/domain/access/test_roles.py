"""Which callers may send which commands."""

from __future__ import annotations

import pytest

from annals.domain.access.roles import ANONYMOUS, Caller, Role
from annals.domain.decisions.commands import (
    Command,
    CreateRegistry,
    DeleteEntities,
    ReplaceModel,
    WriteCapabilities,
    WriteMethod,
    WriteTree,
)
from annals.domain.decisions.permissions import permitted_role

WRITER = Caller("w", groups={"/dirs/d1": Role.WRITER})
READING = Caller("r", Role.READER, {"/dirs/d1": Role.WRITER})

#: Commands that a caller with the role writer in /dirs/d1 only may send.
WITHIN: list[Command] = [
    WriteTree("/dirs/d1", {}, WriteMethod.PUT),
    WriteTree("/dirs/D1/files/f1", {}, WriteMethod.PATCH),
    WriteTree("/dirs", {"d1": {}}, WriteMethod.POST),
    WriteTree("/", {"dirs": {"d1": {"files": {"f": {}}}}}, WriteMethod.POST),
    DeleteEntities("/dirs/d1"),
    DeleteEntities("/dirs/d1/files"),
    DeleteEntities("/dirs", {"d1": {}}),
    WriteTree("/dirs/d1/files/f/meta", {"xref": "/dirs/d1/files/g"}, WriteMethod.PUT),
]
#: Commands that reach beyond /dirs/d1.
BEYOND: list[Command] = [
    WriteTree("/dirs/d2", {}, WriteMethod.PUT),
    WriteTree("/dirs", {"d1": {}, "d2": {}}, WriteMethod.POST),
    WriteTree("/dirs", {}, WriteMethod.POST),
    WriteTree("/", {"dirs": {"d1": {}}}, WriteMethod.PATCH),
    WriteTree("/", {"dirs": {"d1": {}}, "others": {}}, WriteMethod.POST),
    WriteTree("/", {"dirs": {"d1": {}, "d2": {}}}, WriteMethod.POST),
    DeleteEntities("/dirs"),
    DeleteEntities("/dirs", {}),
    DeleteEntities("/dirs", {"d1": {}, "d2": {}}),
    ReplaceModel({}),
    WriteCapabilities({}, WriteMethod.PUT),
    CreateRegistry("r", {}),
]


@pytest.mark.parametrize("command", WITHIN, ids=str)
def test_a_role_in_a_group_reaches_what_is_in_it(command: Command) -> None:
    # Callers: a role can hold for single Groups
    assert permitted_role(WRITER, command)
    assert permitted_role(WRITER, command) is Role.WRITER
    assert permitted_role(READING, command)


@pytest.mark.parametrize("command", BEYOND, ids=str)
def test_a_role_in_a_group_reaches_no_further(command: Command) -> None:
    # Callers: a command that reaches beyond the Group is refused as a whole
    assert not permitted_role(WRITER, command)
    assert not permitted_role(READING, command)


@pytest.mark.parametrize("command", WITHIN + BEYOND, ids=str)
def test_a_role_for_the_registry_holds_everywhere(command: Command) -> None:
    # Callers: a writer changes everything, a reader nothing
    assert permitted_role(ANONYMOUS, command)
    assert permitted_role(Caller("a", Role.ADMIN), command) is Role.ADMIN
    assert not permitted_role(Caller("r", Role.READER), command)
    assert not permitted_role(Caller("nobody"), command)


def test_a_pointer_shows_nothing_that_its_writer_may_not_see() -> None:
    # Callers: a caller that may not read a Group cannot read it through an xref either
    pointing = WriteTree("/dirs/d1/files/f", {"meta": {"xref": "/dirs/d2/files/g"}}, WriteMethod.PUT)
    assert not permitted_role(WRITER, pointing)
    assert permitted_role(READING, pointing)


def test_what_a_caller_sees() -> None:
    # Callers: inside the Group the higher of the two roles holds, elsewhere the role for the registry
    assert WRITER.can_read("/dirs/d1/files") and WRITER.can_read("/dirs/D1")
    assert not WRITER.can_read("/dirs/d2") and not WRITER.can_read("/dirs") and not WRITER.can_read("/")
    assert READING.role_at("/dirs/d1") is Role.WRITER
    assert READING.role_at("/dirs/d2") is Role.READER
