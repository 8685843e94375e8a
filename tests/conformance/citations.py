"""Finds the rules that each test cites, in comments, docstrings and the rows of tables."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from tests.support.source_trees import parse

ROOT: Final = Path(__file__).resolve().parents[2]
TESTS: Final = ROOT / "tests"
SECTIONS: Final[dict[str, dict[str | int, str]]] = yaml.load(
    Path(__file__).with_name("sections.yaml").read_text(), yaml.CSafeLoader
)

#: Prefixes whose ids have no dash.
_BARE: Final = ("T", "V")
_DASHED: Final = "|".join(sorted(set(SECTIONS) - set(_BARE), key=len, reverse=True))
#: `ENT-31`, `P-15/9`, `T01`, `trap 27`; a letter after the number distinguishes rows.
_NAME: Final = rf"(?:(?:{_DASHED})-|[{''.join(_BARE)}]|trap )\d+(?:/\d+)?[a-z]?"
_PARTS: Final = re.compile(r"(trap|[A-Z]+)[- ]?0*(\d+)(?:/(\d+))?")
_ID: Final = re.compile(rf"\b{_NAME}\b")
_RANGE: Final = re.compile(rf"\b({_DASHED})-(\d+)[a-z]? to (?:\1-)?(\d+)\b")
#: The ids before the text of a rule, with commas or `and` between them.
_LEAD: Final = re.compile(rf"{_NAME}(?:(?:, | and | |, and )(?:{_NAME}|to \d+))*:\s+")


class Rule(NamedTuple):
    """The parts of a rule id. Rules sort in the order of the document."""

    prefix: str
    number: int
    part: int = 0

    def __str__(self) -> str:
        dash = "" if self.prefix in _BARE else "-"
        return f"{self.prefix}{dash}{self.number}" + (f"/{self.part}" if self.part else "")


class Citation(NamedTuple):
    """A test that cites a rule. test: its file with its name, or with the id of its row."""

    rule: Rule
    test: str


def citations() -> list[Citation]:
    """All citations, in the order of files and lines."""
    found: list[Citation] = []
    for path in sorted(TESTS.rglob("*.py")):
        found += _in_python(path)
    for path in sorted((TESTS / "spec").rglob("*.yaml")):
        found += _in_table(path)
    return found


def rules_in(text: str) -> list[Rule]:
    """The rules that a text names, including all rules of a range."""
    found = [
        Rule(prefix, number)
        for prefix, first, last in _RANGE.findall(text)
        for number in range(int(first), int(last) + 1)
    ]
    for name in _ID.findall(text):
        prefix, number, part = _PARTS.match(name).groups()  # type: ignore[union-attr]
        rule = Rule("P", 15, int(number)) if prefix == "trap" else Rule(prefix, int(number), int(part or 0))
        if rule not in found:
            found.append(rule)
    return found


def _in_python(path: Path) -> Iterator[Citation]:
    """The citations in comments and docstrings of tests, and in strings outside of functions that begin with an id."""
    name = path.relative_to(ROOT)
    tree = parse(path.read_text())
    tests = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    for line, text in [*_comments(path), *_docstrings(tests)]:
        test = _test_at(tests, line)
        if test is not None:
            yield from _citations_in(text, f"{name}::{test.name}")
    for text in _rows(tree):
        yield from _citations_in(text, f"{name}: {text}")


def _comments(path: Path) -> Iterator[tuple[int, str]]:
    """Comments, each with its first line. Consecutive lines are one comment, unless a line begins with an id."""
    last, start, text = -1, 0, ""
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type != tokenize.COMMENT:
                continue
            words, line = token.string.lstrip("# "), token.start[0]
            if line == last + 1 and not _ID.match(words):
                last, text = line, f"{text} {words}"
                continue
            if text:
                yield start, text
            last, start, text = line, line, words
    if text:
        yield start, text


def _docstrings(tests: Iterable[ast.FunctionDef]) -> Iterator[tuple[int, str]]:
    for test in tests:
        if text := ast.get_docstring(test):
            yield test.lineno, " ".join(text.split())


def _test_at(tests: Iterable[ast.FunctionDef], line: int) -> ast.FunctionDef | None:
    """The test that contains a line. A comment on the line before the test belongs to it, too."""
    for test in tests:
        first = min([test.lineno, *(decorator.lineno for decorator in test.decorator_list)])
        if first - 1 <= line <= (test.end_lineno or test.lineno):
            return test
    return None


def _rows(tree: ast.AST) -> Iterator[str]:
    """Strings outside of functions that begin with ids and a colon."""
    inside = {id(each) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) for each in ast.walk(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in inside:
            continue
        if _LEAD.match(node.value) and "\n" not in node.value:
            yield node.value


def _citations_in(text: str, test: str) -> Iterator[Citation]:
    """The citations of one text: `ENT-1, ENT-2: words; ENT-3: others`, or text that contains ids."""
    for part in re.split(rf"[;.] (?={_NAME})", text):
        lead = _LEAD.match(part)
        for rule in rules_in(lead[0] if lead else part):
            yield Citation(rule, test)


def _in_table(path: Path) -> Iterator[Citation]:
    """The citations in rows of a YAML table. A row is named by its `id`, or by its rule and its text."""
    name = path.relative_to(ROOT)
    table = yaml.load(path.read_text(), _Loader)
    groups = table.values() if isinstance(table, dict) else [table]
    for row in [row for group in groups if isinstance(group, list) for row in group]:
        says = str(row.get("says") or row.get("rule"))
        ids = str(row.get("id", row.get("rule")))
        label = f"{ids}" if "id" in row else f"{ids} {says}"
        named = rules_in(ids) or rules_in(_PLAIN.get(path.name, ""))
        for rule in dict.fromkeys([*named, *rules_in(says)]):
            yield Citation(rule, f"{name}: {label}")


#: The rule of a table whose rows have only numbers.
_PLAIN: Final = {"resource_writes.yaml": "ENT-93"}


class _Loader(yaml.CSafeLoader):
    """Accepts the tags that the tables define, and ignores their values."""


_Loader.add_multi_constructor("!", lambda loader, suffix, node: Any)
