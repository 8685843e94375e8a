"""Runs the tables of this folder: expressions with their values and errors, and invalid expressions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from annals.domain.cesql import ParseError, compile_expression

FOLDER = Path(__file__).parent
VALUES = ("literals", "precedence", "attributes", "casts", "operators", "like", "functions", "errors")


class _Loader(yaml.CSafeLoader):
    """Loads timestamps as text."""


_RESOLVERS = {
    first: [(tag, pattern) for tag, pattern in rows if tag != "tag:yaml.org,2002:timestamp"]
    for first, rows in _Loader.yaml_implicit_resolvers.items()
}
_Loader.yaml_implicit_resolvers = _RESOLVERS


def table(name: str) -> list[dict[str, Any]]:
    return yaml.load((FOLDER / f"{name}.yaml").read_text(), _Loader)  # type: ignore[no-any-return]


def cases() -> list[Any]:
    return [
        pytest.param(expression, wanted, row.get("event", {}), id=f"{row['rule']} {row['says']}: {expression!a}")
        for name in VALUES
        for row in table(name)
        for expression, wanted in row["gives"].items()
    ]


@pytest.mark.parametrize(("expression", "wanted", "event"), cases())
def test_values(expression: str, wanted: Any, event: dict[str, Any]) -> None:
    # SUB-641: an evaluation always has a value, also if there are errors
    assert isinstance(expression, str), "expressions are text, not what YAML makes of it"
    value, *errors = wanted if isinstance(wanted, list) else [wanted]
    compiled = compile_expression(expression)
    found = compiled.evaluate(event)
    assert (found.value, type(found.value), list(found.errors)) == (value, type(value), errors)
    assert found.error == (errors[0] if errors else None)
    # SUB-421, SUB-644: a filter passes an event if the value casts to true and there is no error
    passes = not errors and (value.lower() == "true" if isinstance(value, str) else bool(value))
    assert compiled.matches(event) is passes


@pytest.mark.parametrize("row", table("refused"), ids=lambda row: f"{row['rule']} {row['says']}: {row['expression']!a}")
def test_refused(row: dict[str, Any]) -> None:
    with pytest.raises(ParseError, match=re.escape(row["reason"])) as caught:
        compile_expression(row["expression"])
    line, column = row["at"]
    assert [caught.value.line, caught.value.column] == [line, column]
    assert str(caught.value) == f"line {line}, column {column}: {caught.value.reason}"
    lines = row["expression"].split("\n")
    assert caught.value.position == sum(len(each) + 1 for each in lines[: line - 1]) + column - 1
