"""Regular expressions of ECMA-262, with and without the `u` flag, compared with JavaScript.

SC-10, SC-36, SC-39: the same expressions are valid, and they match the same texts.
"""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from annals.domain.formats.jsonschema.values import is_pattern, matches_pattern
from tests.support.downloads import npm

#: Expressions for which the flag matters: brackets, braces and escapes that are literal without it.
PATTERNS = (
    *("^{a}$", "{", "a{", "}", "]", "a{,3}", "x{1", "x{1,", "{{.*}}", "}{", r"a{2}{3}", "{1}", "a{2,1}"),
    *(r"[\w-a]", r"[a-\w]", r"[\w-]", r"[-\w]", "[a-z0-9-_]", "[[a]]", "[a&&b]", "^[^[]]+$", r"[\]]", "[z-a]", "["),
    *(r"\a", r"\z", r"\_", r"\-", r"\/", r"\'", r"\x", r"\u12", r"\pL", r"\c", r"\cA", r"[\c]", r"\k", "\\"),
    *(r"\1", r"(a)\1", r"(a)\2", r"(?<n>a)\2", r"[\1]", r"\08", r"\8", r"\377", r"\01"),
    *("(?=a)", "(?<=a)b", "(?i)a", "(?>a)", "x*+", "*", "(", "a|*", r"[\d-z]{2,}]"),
)
TEXTS = (
    *(
        "",
        "a",
        "b",
        "ab",
        "aa",
        "aaaaaa",
        "{",
        "{a}",
        "a{",
        "}",
        "}{",
        "a{,3}",
        "x{1",
        "x{1,",
        "{{q}}",
        "]",
        "[",
        "[a]",
    ),
    *(
        "-",
        "w-a",
        "a]",
        "_",
        "/",
        "'",
        "z",
        "x",
        "u12",
        "pL",
        "c",
        r"\c",
        "\1",
        "a\2",
        "1",
        "8",
        "\x008",
        "\xff",
        "5z]",
    ),
)
#: For each pattern: null if JavaScript refuses it, else whether it matches each text.
SCRIPT = """
const [patterns, texts] = JSON.parse(require("fs").readFileSync(0));
const made = (pattern, flag) => { try { return new RegExp(pattern, flag) } catch { return null } };
const found = pattern => made(pattern, "") || made(pattern, "u");
console.log(JSON.stringify(patterns.map(found).map(one => one && texts.map(text => one.test(text)))));
"""


def differing(patterns: list[str], home: Path) -> dict[str, Any]:
    """Returns the results for patterns on which the registry and JavaScript differ; undecided matches do not count."""
    theirs = npm.run(SCRIPT, home, [patterns, TEXTS])
    ours = [[matches_pattern(pattern, text) for text in TEXTS] if is_pattern(pattern) else None for pattern in patterns]
    return {
        pattern: pair
        for pattern, *pair in zip(patterns, ours, theirs, strict=True)
        if (pair[0] is None) != (pair[1] is None) or _differ(*pair)
    }


def _differ(ours: list[bool | None] | None, theirs: list[bool] | None) -> bool:
    return any(one not in (None, other) for one, other in zip(ours or (), theirs or (), strict=True))


def test_the_flag_does_not_count(tmp_path: Path) -> None:
    assert differing(list(PATTERNS), tmp_path) == {}


@pytest.mark.parametrize("seed", range(3))
def test_any_expression(tmp_path: Path, seed: int) -> None:
    # Known differences are left out: references to groups that have not ended yet, and word boundaries beyond ASCII.
    parts = ["a", "b", "1", "8", "{", "}", "[", "]", "-", "\\", r"\d", r"\w", r"\x", r"\c", r"\_", r"\z"]
    parts += ["(", ")", "(?:", "|", "*", "+", "?", "{1}", "{1,2}", "^", "$", ".", ","]
    chance = random.Random(seed)
    made = {"".join(chance.choices(parts, k=chance.randint(1, 7))) for _ in range(3000)}
    found = differing(sorted(one for one in made if not re.search(r"\\[\db]", one, re.IGNORECASE)), tmp_path)
    assert found == {}
