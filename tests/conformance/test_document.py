"""The conformance document is up to date with the tests."""

from __future__ import annotations

import re

import pytest

from tests.conformance.citations import Rule, citations, rules_in
from tests.conformance.document import DOCUMENT_PATH, text


def test_it_is_up_to_date() -> None:
    # it has to be generated again after each new row or comment that cites a rule
    assert DOCUMENT_PATH.read_text() == text(citations()), "run: python -m tests.conformance.document"


@pytest.mark.parametrize(
    ("words", "rules"),
    [
        ("ENT-31a", [Rule("ENT", 31)]),
        ("MOD-94a ENT-68b", [Rule("MOD", 94), Rule("ENT", 68)]),
        ("HTTP-40 to 42", [Rule("HTTP", 40), Rule("HTTP", 41), Rule("HTTP", 42)]),
        ("P-15/9 and trap 27", [Rule("P", 15, 9), Rule("P", 15, 27)]),
        ("T01", [Rule("T", 1)]),
        ("UTF-8, SHA-256", []),
    ],
)
def test_how_rules_are_cited(words: str, rules: list[Rule]) -> None:
    assert rules_in(words) == rules


def test_it_can_be_read_alone() -> None:
    # every test file that it names exists
    document = DOCUMENT_PATH.read_text()
    for file in set(re.findall(r"`([\w/]+\.(?:py|yaml))", document)):
        assert (DOCUMENT_PATH.parents[2] / "tests" / file).exists(), file
