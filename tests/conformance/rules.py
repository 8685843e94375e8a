"""Generates docs/reference/rules.md from rules.yaml: `python -m tests.conformance.rules`.

The table defines every rule id that code, tests and guides cite, with a sentence, source document and section.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

import yaml

from tests.conformance.citations import ROOT

TABLE: Final = Path(__file__).with_name("rules.yaml")
DOCUMENT_PATH: Final = ROOT / "docs" / "reference" / "rules.md"

_HEAD: Final = """# Rules

This file defines the rule ids that code, tests and guides cite. Each rule has a sentence in our own words, and the
document and section of its source. A rule without a source is a decision of this project.
[conformance.md](conformance.md) lists the tests of the rules. `python -m tests.conformance.rules` generates this file
from `tests/conformance/rules.yaml`. A test fails if this file is out of date.

`T5` is also written `T05`, `V-1` is also written `V-01`, and `trap 27` is `P-15/27`. A letter or a slash after an id
names one of several rows about the same rule.
"""


class Definition(NamedTuple):
    """The sentence of a rule, and its source."""

    says: str
    source: str
    section: str


def definitions() -> dict[str, Definition]:
    """Every rule by its id, in the order of the table."""
    table = yaml.load(TABLE.read_text(), yaml.CSafeLoader)
    return {name: Definition(**row) for name, row in table.items()}


#: The subject of the rules with each prefix, in the order of the document.
PREFIXES: Final = {
    "ENT": "entities",
    "MOD": "model",
    "CAP": "capabilities",
    "HTTP": "HTTP binding",
    "FLAG": "request flags",
    "PAG": "pages",
    "ERR": "errors",
    "SER": "views and JSON",
    "C": "places where the documents differ",
    "TRAP": "hazards of the platform",
    "P": "invariants and subtle cases",
    "EV": "change events",
    "T": "sample interactions and their events",
    "EP": "endpoints",
    "MS": "messages",
    "SC": "schemas",
    "CM": "endpoints, messages and schemas together",
    "V": "checks beyond the model",
    "SA": "sample documents",
    "SUB": "subscriptions and deliveries",
    "LEG": "Schema Registry 0.2 and Message Catalog 0.1",
    "ACC": "access",
}
_DASHED: Final = "|".join(sorted(set(PREFIXES) - {"T"}, key=len, reverse=True))
#: `ENT-31`, `P-15/9`, `T01`, `trap 27`. Unlike in citations.py, prefixes need no section, and `V1` is no id.
_ID: Final = re.compile(rf"\b(?:({_DASHED})-|(T|trap ))(\d+)(?:/(\d+))?[a-z]?\b")
_RANGE: Final = re.compile(rf"\b({_DASHED})-(\d+)[a-z]? to (?:\1-)?(\d+)\b")


def ids_in(text: str) -> set[str]:
    """The ids that a text names, spelled as in the table; the first and the last one of a range."""
    found = {_spelled(*match.groups()) for match in _ID.finditer(text)}
    return found | {f"{prefix}-{int(last)}" for prefix, _, last in _RANGE.findall(text)}


def ids_between(text: str) -> set[str]:
    """The ids between the ends of the ranges that a text names. Not every number has a rule."""
    return {
        f"{prefix}-{number}"
        for prefix, first, last in _RANGE.findall(text)
        for number in range(int(first) + 1, int(last))
    }


def _spelled(dashed: str | None, bare: str | None, number: str, part: str | None) -> str:
    if bare == "trap ":
        return f"P-15/{int(number)}"
    if bare:
        return f"T{int(number)}"
    return f"{dashed}-{int(number)}" + (f"/{int(part)}" if dashed == "P" and part else "")


def text(defined: Mapping[str, Definition]) -> str:
    """The whole document."""
    parts = [_HEAD, f"{len(defined)} rules.\n"]
    for prefix, names in groupby(defined, key=prefix_of):
        parts.append("\n".join(_table(prefix, {name: defined[name] for name in names})))
    return "\n".join(parts)


def prefix_of(name: str) -> str:
    return re.split(r"[-\d]", name)[0]


def _table(prefix: str, defined: Mapping[str, Definition]) -> Iterator[str]:
    yield f"## {prefix}: {PREFIXES[prefix]}\n"
    yield "| Rule | Says | Source |"
    yield "|---|---|---|"
    for name, rule in defined.items():
        yield f"| {name} | {_escaped(rule.says)} | {_escaped(f'{rule.source}: {rule.section}')} |"
    yield ""


def _escaped(words: str) -> str:
    """A text, escaped for a table cell; angle brackets in code stay."""
    parts = words.replace("|", "\\|").split("`")
    return "`".join(part if index % 2 else part.replace("<", "&lt;") for index, part in enumerate(parts))


def main(place: Path = DOCUMENT_PATH) -> None:
    place.write_text(text(definitions()))


if __name__ == "__main__":
    main()
