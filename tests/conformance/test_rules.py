"""Every cited rule id is defined, and the document of rules is up to date with the table."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.conformance.citations import ROOT
from tests.conformance.rules import DOCUMENT_PATH, PREFIXES, definitions, ids_between, ids_in, prefix_of, text

FOLDERS = ("domain", "commands", "projections", "api", "spark_projections", "bench", "tests", "docs")
SUFFIXES = {".py", ".yaml", ".yml", ".md", ".sql", ".json", ".js", ".html", ".sh"}
#: Files that list rule ids or use them as examples, and cite no rule.
LISTS = {
    "docs/reference/rules.md",
    "docs/reference/conformance.md",
    *(f"tests/conformance/{name}" for name in ("rules.yaml", "sections.yaml", "test_document.py", Path(__file__).name)),
    *(f"tests/conformance/{name}.py" for name in ("citations", "document", "rules")),
}
#: Names that look like rule ids but are none, with the reason.
NO_RULES = {
    **dict.fromkeys(("P-256", "P-384", "P-521"), "elliptic curves of JSON Web Keys"),
    **dict.fromkeys(("T0", "T300", "T1500"), "names of types in schemas that tests generate"),
}
#: Rules that no test cites, but product code or bench/ does, with the reason.
UNTESTED = {"SUB-646": "a speed, which bench/ shows because tests assert plans and counts"}


@cache
def files() -> dict[str, str]:
    """The contents of every file that may cite rules, by path."""
    return {str(path.relative_to(ROOT)): path.read_text(errors="replace") for path in _paths()}


def _paths() -> Iterator[Path]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file() and str(path.relative_to(ROOT)) not in LISTS:
                yield path


def test_the_document_is_up_to_date() -> None:
    assert DOCUMENT_PATH.read_text() == text(definitions()), "run: python -m tests.conformance.rules"


def test_what_is_cited_is_defined() -> None:
    known = {*definitions(), *NO_RULES}
    unknown = {name: path for path, words in files().items() for name in ids_in(words) - known}
    assert not unknown, "define in tests/conformance/rules.yaml, or correct the id"


def test_what_is_defined_is_cited_by_a_test() -> None:
    in_tests = [words for path, words in files().items() if path.startswith("tests/")]
    cited = set().union(*(ids_in(words) | ids_between(words) for words in in_tests))
    assert set(definitions()) - cited == set(UNTESTED)


def test_what_no_test_cites_is_cited_elsewhere() -> None:
    cited = set().union(*map(ids_in, files().values()))
    assert cited >= {*UNTESTED, *NO_RULES}, "an exception that nothing needs"


def test_every_rule_has_a_sentence_and_a_source() -> None:
    for name, rule in definitions().items():
        assert rule.says.endswith(".") and len(rule.says.split()) >= 4, name
        assert rule.source and rule.section, name


def test_rules_stand_by_prefix() -> None:
    prefixes = list(dict.fromkeys(prefix_of(name) for name in definitions()))
    assert prefixes == list(PREFIXES)


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("ENT-31a", {"ENT-31"}),
        ("LEG-401 and ACC-84", {"LEG-401", "ACC-84"}),
        ("P-15/9 and trap 27", {"P-15/9", "P-15/27"}),
        ("ENT-2/a", {"ENT-2"}),
        ("T05, V-07", {"T5", "V-7"}),
        ("HTTP-40 to 44", {"HTTP-40", "HTTP-44"}),
        ("UTF-8, SHA-256, V1", set()),
    ],
)
def test_how_rules_are_cited(words: str, names: set[str]) -> None:
    assert ids_in(words) == names


def test_what_is_between() -> None:
    assert ids_between("HTTP-40 to 43, SUB-1 to SUB-3") == {"HTTP-41", "HTTP-42", "SUB-2"}
