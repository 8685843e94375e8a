"""`annals cesql`: evaluates CloudEvents SQL expressions, without a store."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from annals.api.cli.outcome import InvalidInput, UsageError
from annals.domain.cesql import (
    CesqlExpression,
    ContextAttributes,
    ErrorKind,
    EvaluationResult,
    ParseError,
    compile_expression,
)
from annals.domain.cesql.values import DATA_MEMBER
from annals.domain.values.json_text import InvalidJson, dumps, loads

Text = Annotated[str | None, typer.Argument(metavar="EXPRESSION", help="The expression.")]
EventFile = Annotated[
    Path | None,
    typer.Option("--event", metavar="FILE", exists=True, dir_okay=False, readable=True, help="A CloudEvent as JSON."),
]
Lines = Annotated[bool, typer.Option("--jsonl", help="Read lines with an expression and an event from standard input.")]

#: Number of cached expressions, for lines that repeat an expression.
_CACHE_SIZE: Final = 1024


def cesql(expression: Text = None, event: EventFile = None, jsonl: Lines = False) -> None:
    """Evaluate a CloudEvents SQL expression, and print its value and its first error as JSON.

    With --jsonl, each line of standard input is an object with `expression` and `event`, and each line of output an
    object with `result` and `error`. If an expression there does not parse, its result is false and its error "parse";
    an EXPRESSION that does not parse is refused. Without an event, all attributes are missing.

    Example: annals cesql "type LIKE '%.created'" --event event.json
    """
    if jsonl:
        if expression is not None or event is not None:
            raise UsageError("--jsonl reads expressions and events from standard input; give neither as an argument.")
        _evaluate_lines()
        return
    if expression is None:
        raise UsageError('give an expression, such as annals cesql "1 + 1", or --jsonl.')
    try:
        compiled = compile_expression(expression)
    except ParseError as error:
        raise InvalidInput(f"the expression does not parse: {error}") from None
    typer.echo(_result_json(compiled.evaluate(_read_event(event) if event else {})))


def _read_event(file: Path) -> ContextAttributes:
    try:
        return _context_attributes(loads(file.read_bytes()))
    except (InvalidJson, TypeError) as error:
        raise InvalidInput(f"{file}: {error}") from None


def _evaluate_lines() -> None:
    for number, line in enumerate(sys.stdin.buffer, 1):
        if not line.strip():
            continue
        try:
            typer.echo(_evaluate_line(loads(line)))
        except (InvalidJson, TypeError) as error:
            raise InvalidInput(f"line {number}: {error}") from None


def _evaluate_line(line_members: Any) -> str:
    if not isinstance(line_members, dict) or not isinstance(line_members.get("expression"), str):
        raise TypeError('an object with the string "expression" is needed')
    event = line_members.get("event")
    attributes = {} if event is None else _context_attributes(event)
    try:
        return _result_json(_compile(line_members["expression"]).evaluate(attributes))
    except ParseError:
        return _result_json(EvaluationResult(False, (ErrorKind.PARSE,)))


@lru_cache(_CACHE_SIZE)
def _compile(text: str) -> CesqlExpression:
    return compile_expression(text)


def _context_attributes(event: Any) -> ContextAttributes:
    """The context attributes of an event in JSON. Raises: TypeError."""
    if not isinstance(event, dict):
        raise TypeError("an event has to be an object")
    attributes: Mapping[str, Any] = {
        name: value for name, value in event.items() if name not in (DATA_MEMBER, "data_base64")
    }
    for name, value in attributes.items():
        if isinstance(value, dict | list):
            raise TypeError(f'the attribute "{name}" of the event is neither a string, a number nor a Boolean')
    return attributes


def _result_json(result: EvaluationResult) -> str:
    return dumps({"result": result.value, "error": result.error}).decode()
