"""`annals cesql`: expressions from the command line, and from lines of standard input."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.api.cli.test_console import write_file
from tests.support.console import Annals

EVENT = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t.created", "n": 5, "on": True, "data": {"id": 2}}


def evaluate_lines(annals: Annals, monkeypatch: pytest.MonkeyPatch, *texts: Any) -> Any:
    """Runs `annals cesql --jsonl` with lines: texts as they are, other values as JSON."""
    given = "".join(f"{text if isinstance(text, str) else json.dumps(text)}\n" for text in texts)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
    return annals("cesql", "--jsonl")


@pytest.mark.parametrize(
    ("expression", "printed"),
    [
        ("1 + 1", {"result": 2, "error": None}),
        ("type LIKE '%.created'", {"result": True, "error": None}),
        ("CONCAT(type, ' ', n, ' ', on)", {"result": "t.created 5 true", "error": None}),
        ("absent = 'ä'", {"result": False, "error": "missingAttribute"}),
        ("LEFT('ä', -1)", {"result": "ä", "error": "functionEvaluation"}),
        ("NOSUCH()", {"result": False, "error": "missingFunction"}),
        ("data", {"result": False, "error": "missingAttribute"}),
    ],
)
def test_one_expression(annals: Annals, folder: Path, expression: str, printed: Any) -> None:
    # SUB-641: an expression with an error has a value too
    ended = annals("cesql", expression, "--event", write_file(folder, "event.json", EVENT))
    assert (ended.code, json.loads(ended.out), ended.err) == (0, printed, "")


def test_without_an_event(annals: Annals) -> None:
    assert json.loads(annals("cesql", "EXISTS id AND 1 < 2").out) == {"result": True, "error": None}
    assert json.loads(annals("cesql", "--", "-1").out) == {"result": -1, "error": None}


def test_what_is_refused(annals: Annals, folder: Path) -> None:
    # SUB-604: the message names the position of the error
    ended = annals("cesql", "type LIKE")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == (
        "annals: the expression does not parse: line 1, column 10: a string literal is expected, not the end\n"
    )
    for content, reason in (("{", "line 1"), ("[]", "an event has to be an object"), ({"x": {}}, 'the attribute "x"')):
        ended = annals("cesql", "TRUE", "--event", write_file(folder, "event.json", content))
        assert (ended.code, ended.out) == (1, "") and reason in ended.err
    for arguments in ([], ["TRUE", "--jsonl"], ["TRUE", "--event", "missing.json"]):
        assert annals("cesql", *arguments).code == 2


def test_lines(annals: Annals, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = evaluate_lines(
        annals,
        monkeypatch,
        {"expression": "n * 2", "event": EVENT},
        "",
        {"expression": "ABC("},
        {"expression": "1 / 0", "event": None},
        {
            "expression": "big = '12345678901234567890' AND half = '0.5'",
            "event": {"big": 12345678901234567890, "half": 0.5},
        },
        {"expression": "EXISTS none", "event": {"none": None, "data": [1], "data_base64": "AA=="}, "more": 1},
    )
    assert ended.code == 0
    assert [json.loads(line) for line in ended.out.splitlines()] == [
        {"result": 10, "error": None},
        {"result": False, "error": "parse"},
        {"result": 0, "error": "math"},
        {"result": True, "error": None},
        {"result": False, "error": None},
    ]


@pytest.mark.parametrize("line", ["{", "[]", "{}", '{"expression": 1}', '{"expression": "1", "event": []}', "\ud800"])
def test_lines_that_are_refused(annals: Annals, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    # earlier lines are evaluated; the error names the number of the line
    if line == "\ud800":
        line = '{"expression": "\\ud800"}'
    ended = evaluate_lines(annals, monkeypatch, {"expression": "1"}, line)
    assert (ended.code, ended.out) == (1, '{"result":1,"error":null}\n')
    assert ended.err.startswith("annals: line 2: ")
