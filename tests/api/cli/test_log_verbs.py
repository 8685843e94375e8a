"""`annals log`: history, differences and interactions from the store, for people and for programs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from annals.api.cli.tables import printable_text
from tests.api.cli.test_console import samples, write_file
from tests.support.console import Annals

__all__ = ["samples"]

GROUP, FILE, VERSION = "/dirs/d1", "/dirs/d1/files/f1", "/dirs/d1/files/f1/versions/v1"
AGAIN = {"dirs": {"d1": {"name": "two"}}}


@pytest.fixture
def database(annals: Annals, samples: list[Path], folder: Path, store_url: str) -> str:
    """A store with a Group and a file, whose Group is renamed later; on each database."""
    for file in (*samples, write_file(folder, "again.json", AGAIN)):
        assert annals("import", file, "--database", store_url).code == 0
    return store_url


def rows(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def lines(text: str) -> list[Any]:
    return list(map(json.loads, text.splitlines()))


def test_history_diff_and_interaction(annals: Annals, database: str) -> None:
    # EV-24: a revision names its interaction, and the interaction has all events of the request
    history = rows(annals("log", "history", GROUP, "--database", database).out)
    assert [row[2:6] for row in history] == [
        ["created", GROUP, "1", "console"],
        ["updated", GROUP, "2", "console"],
    ]
    assert history[1][7] == "epoch modifiedat name"
    assert annals("log", "history", "dirs/d1/", "-r", "-n", "1", "--database", database).out.split("\t")[2] == "updated"
    below = rows(annals("log", "history", GROUP, "--below", "--until", history[0][6], "--database", database).out)
    assert [row[3] for row in below] == [GROUP, FILE, VERSION]

    found = rows(annals("log", "diff", "--from", history[0][6], "--database", database).out)
    assert ["changed", GROUP, "name", '"one"', '"two"'] in found
    assert {(row[0], row[1]) for row in found} == {("changed", GROUP)}
    created = rows(annals("log", "diff", FILE, "--alone", "--from", "1", "--database", database).out)
    assert {(row[0], row[1]) for row in created} == {("created", FILE)}
    assert created[-1][2] == "(document)"

    interaction = rows(annals("log", "interaction", history[0][6].upper(), "--database", database).out)
    facts = dict(row for row in interaction if len(row) == 2)
    assert (facts["xregcorrelationid"], facts["caller"]) == (history[0][6], "console")
    assert [row[3] for row in interaction if len(row) > 2][-3:] == [GROUP, FILE, VERSION]


def test_the_same_as_json(annals: Annals, database: str) -> None:
    # one object a line, as the HTTP API returns it
    history = lines(annals("log", "history", GROUP, "--json", "--database", database).out)
    assert [(row["action"], (row["before"] or {}).get("name"), row["after"]["name"]) for row in history] == [
        ("created", None, "one"),
        ("updated", "one", "two"),
    ]
    id = history[1]["xregcorrelationid"]
    (interaction,) = lines(annals("log", "interaction", id, "--json", "--database", database).out)
    assert history[1] in interaction["events"]
    differences = lines(annals("log", "diff", GROUP, "--alone", "--json", "--from", "1", "--database", database).out)
    assert [(each["xid"], each["change"]) for each in differences] == [(GROUP, "created")]


REFUSED = [
    (("history", "/dirs/none"), "/dirs/none"),
    (("history", "/", "--from", "01kd3yh5rz9m4t7c2x8v6b1nqw"), '"from=01kd3yh5rz9m4t7c2x8v6b1nqw"'),
    (("diff", "--from", "99999"), '"from=99999"'),
    (("diff", "--from", "1", "--to", "2126-12-01T00:00:00Z"), '"to=2126-12-01T00:00:00Z"'),
    (("interaction", "none"), "none"),
]


@pytest.mark.parametrize(("arguments", "named"), REFUSED)
def test_what_is_not_there_is_code_1(
    annals: Annals, samples: list[Path], arguments: tuple[str, ...], named: str
) -> None:
    # FLAG-80: an argument that is unknown or beyond the head; one line names it
    annals("import", samples[0])
    ended = annals("log", *arguments)
    assert (ended.code, ended.out, ended.err.count("\n")) == (1, "", 1)
    assert named in ended.err


@pytest.mark.parametrize("verb", [("history",), ("diff", "--from", "1"), ("interaction", "x")])
@pytest.mark.parametrize("url", ["sqlite:///missing.db", "postgresql://me:geheim@127.0.0.1:1/none"])
def test_a_store_out_of_reach_is_code_3(annals: Annals, verb: tuple[str, ...], url: str) -> None:
    ended = annals("log", *verb, "--database", url)
    assert (ended.code, ended.out, ended.err.count("\n")) == (3, "", 1)
    assert "geheim" not in ended.err


@pytest.mark.parametrize("verb", ["tail", "show", "verify", "history", "interaction", "diff"])
def test_help_has_an_example(annals: Annals, verb: str) -> None:
    ended = annals("log", verb, "--help")
    assert ended.code == 0
    assert f"Example: annals log {verb}" in re.sub(r"\s+", " ", ended.out)


VERBS = [("tail", "-n", "3"), ("history", GROUP), ("diff", "--from", "1")]


@pytest.mark.parametrize("arguments", VERBS)
def test_colours_are_for_people_only(
    annals: Annals, samples: list[Path], monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    # columns with colours on a terminal; tabs in a pipe or with NO_COLOR
    annals("import", *samples)
    plain = annals("log", *arguments).out
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = annals("log", *arguments).out
    assert "\x1b[" in coloured and "\t" not in coloured
    assert coloured.count("\n") == plain.count("\n")
    assert re.sub(r"\x1b\[[0-9;]*m|\s", "", coloured) == re.sub(r"\s", "", plain)
    monkeypatch.setenv("NO_COLOR", "1")
    assert annals("log", *arguments).out == plain


def test_nothing_reaches_a_terminal_as_a_control_character() -> None:
    # callers choose their names, which could contain control sequences of terminals
    assert printable_text("a\x1b[2Jb\tc\u202ed é") == "a\\x1b[2Jb\\tc\\u202ed é"
