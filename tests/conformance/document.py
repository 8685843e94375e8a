"""Generates docs/reference/conformance.md from the tests: `python -m tests.conformance.document`.

The document has each rule with its source section, its sentence from rules.yaml, and up to three tests that cite it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Final

from tests.conformance.citations import ROOT, SECTIONS, Citation, Rule, citations
from tests.conformance.rules import Definition, definitions

DOCUMENT_PATH: Final = ROOT / "docs" / "reference" / "conformance.md"
TESTS: Final = 3

_HEAD: Final = """# Conformance

This file lists every rule that a test cites, with the section of xRegistry 1.0-rc4 that is its source.
`python -m tests.conformance.document` generates this file from the tests and from the table of [rules.md](rules.md). A
test fails if this file is out of date.

The ids are our own: ENT entities, MOD model, CAP capabilities, HTTP the binding, FLAG request flags, PAG pages, ERR
errors, SER views and JSON, C places where the documents differ and how we read them, P invariants (P-15 numbered
cases), TRAP hazards of the platform, EV and T change events, EP, MS, SC, CM and V the endpoint, message and schema
registries. A test is a function, or a row of a table: the entry has its file and its id or words.
"""
_ORDER: Final = list(SECTIONS)


def text(found: Iterable[Citation]) -> str:
    """The whole document."""
    cited: dict[Rule, list[Citation]] = {}
    for each in found:
        cited.setdefault(each.rule, []).append(each)
    rules = sorted((rule for rule in cited if _section(rule)), key=_place)
    parts = [_HEAD, f"{len(rules)} rules, {sum(len(cited[rule]) for rule in rules)} citations.\n"]
    defined = definitions()
    for section, members in groupby(rules, key=_heading):
        parts.append(_table(section, {rule: cited[rule] for rule in members}, defined))
    parts.append(_missing(set(rules)))
    return "\n".join(parts)


def _table(section: str, cited: Mapping[Rule, list[Citation]], defined: Mapping[str, Definition]) -> str:
    rows = [f"| {rule} | {_says(rule, defined)} | {_tests(found)} |" for rule, found in cited.items()]
    return "\n".join([f"## {section}\n", "| Rule | Says | Shown by |", "|---|---|---|", *rows, ""])


def _says(rule: Rule, defined: Mapping[str, Definition]) -> str:
    """The sentence of a rule. The table of rules writes `V-1` for `V1`."""
    return _escaped(defined[f"V-{rule.number}" if rule.prefix == "V" else str(rule)].says)


def _tests(found: Iterable[Citation]) -> str:
    """The first tests without duplicates, and the number of the others."""
    names = dict.fromkeys(each.test for each in sorted(found, key=_weight))
    shown = [f"`{_short(name)}`" for name in list(names)[:TESTS]]
    more = len(names) - len(shown)
    return "<br>".join(shown) + (f" and {more} more" if more else "")


def _weight(citation: Citation) -> bool:
    """Tests over HTTP come first."""
    return "spec/http/" not in citation.test


def _missing(shown: set[Rule]) -> str:
    """The rules of the specification that no test cites."""
    ids = [rule for rule in _all_rules() if rule not in shown]
    listed = ", ".join(map(str, ids)) or "None."
    return f"## Not shown yet\n\nRules that no test cites: {listed}\n"


def _all_rules() -> Iterator[Rule]:
    for prefix in _COMPLETE:
        for span in SECTIONS[prefix]:
            first, last = _span(span)
            yield from (Rule(prefix, number) for number in range(first, last + 1))


#: Prefixes for which every number in the sections is a rule.
_COMPLETE: Final = ("ENT", "MOD", "CAP", "HTTP", "FLAG", "PAG", "ERR", "SER")


def _section(rule: Rule) -> str | None:
    for span, section in SECTIONS[rule.prefix].items():
        first, last = _span(span)
        if first <= rule.number <= last:
            return section
    return None


def _span(span: str | int) -> tuple[int, int]:
    first, _, last = str(span).partition("-")
    return int(first), int(last or first)


def _heading(rule: Rule) -> str:
    return f"{rule.prefix}: {_section(rule)}"


def _place(rule: Rule) -> tuple[int, int, int]:
    return _ORDER.index(rule.prefix), rule.number, rule.part


def _short(name: str) -> str:
    """The name of a test, escaped as code in a table cell."""
    return name.removeprefix("tests/").replace("`", "'").replace("|", "\\|")


def _escaped(words: str) -> str:
    """A text, escaped for a table cell."""
    return words.replace("`", "'").replace("|", "\\|").replace("<", "&lt;")


def main(place: Path = DOCUMENT_PATH) -> None:
    place.write_text(text(citations()))


if __name__ == "__main__":
    main()
