"""Verbs of access: a refusal names the option or the argument that has the value.

A value that is wrong whatever the registry has is wrong usage.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from annals.api.cli.outcome import ExitCode
from tests.support.console import Annals

REFUSED = {
    "a role of a key": ("keys add ci --role x", "--role: it is not one of: reader, writer, admin."),
    "a role in a Group": ("keys add ci --group /dirs/d=x", "--group /dirs/d: it is not one of: reader, writer, admin."),
    "a place of a key": ("keys add ci --group d=reader", '--group d: "d" is no place: '),
    "a name": ("keys add console --role reader", "NAME: "),
    "the end of a key": ("keys add ci --role reader --expires x", "--expires: it is not an RFC 3339 timestamp"),
    "a grace": ("keys rotate k7m2q9w4x8yz --grace -1", "--grace: it is not from 0 to 604800."),
    "a subject": ("grants add bob reader", "SUBJECT: it is not anyone, caller:<name> or claim:<word>."),
    "a role of a grant": ("grants add caller:bob x", "ROLE: it is not one of: reader, writer, admin."),
    "a place of a grant": ("grants add caller:bob reader d", 'PLACE: "d" is no place: '),
    "an id": ("grants add caller:bob reader --id /", "--id: letters, digits, . _ ~ and - are needed"),
    "the end of a grant": ("grants add caller:bob reader --expires x", "--expires: it is not an RFC 3339 timestamp"),
}


@pytest.mark.parametrize(("words", "message"), REFUSED.values(), ids=REFUSED)
def test_a_refusal_names_the_option(annals: Annals, folder: Path, words: str, message: str) -> None:
    folder.joinpath("empty.json").write_text("{}")
    assert annals("import", "--as", "registry", "empty.json").code == ExitCode.DONE
    ended = annals(*words.split())
    assert (ended.code, ended.out) == (ExitCode.USAGE, "")
    assert ended.err.startswith(f"annals: {message}") and ended.err.count("\n") == 1


TAKEN = {
    "a name": ("keys add ci --role reader", 'NAME: a key with the name "ci" exists already.'),
    "an id": ("grants add caller:bob reader --id g", "--id: the grant g exists already."),
}


@pytest.mark.parametrize(("words", "message"), TAKEN.values(), ids=TAKEN)
def test_what_the_registry_has_already_is_no_wrong_usage(
    annals: Annals, folder: Path, words: str, message: str
) -> None:
    folder.joinpath("empty.json").write_text("{}")
    assert annals("import", "--as", "registry", "empty.json").code == ExitCode.DONE
    assert annals(*words.split()).code == ExitCode.DONE
    assert annals(*words.split()) == (ExitCode.REFUSED, "", f"annals: {message}\n")


def test_the_role_of_a_password_is_wrong_usage(annals: Annals) -> None:
    said = "annals: --role: it is not one of: reader, writer, admin.\n"
    assert annals("passwd", "ada", "--role", "foo") == (ExitCode.USAGE, "", said)


def test_a_key_without_a_role_is_wrong_usage(annals: Annals) -> None:
    ended = annals("keys", "add", "ci")
    assert (ended.code, ended.out) == (ExitCode.USAGE, "")
    assert ended.err == "annals: a key needs a role: --role for the whole registry, or --group for a Group.\n"
