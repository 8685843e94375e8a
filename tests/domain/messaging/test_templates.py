"""Placeholders of templates: their names, expansion, matching, and problems."""

from __future__ import annotations

from time import thread_time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals.domain.messaging.templates import (
    MAX_PLACEHOLDERS,
    match_templates,
    placeholder_names,
    template_problems,
)

NAMES = st.sampled_from(["a", "b", "C_1"])
WORDS = st.text("xyz-._~0", min_size=1, max_size=5)
TEMPLATES = st.lists(st.one_of(NAMES.map(lambda name: f"{{{name}}}"), WORDS, st.just("/")), max_size=8).map("".join)


def expand(template: str, values: dict[str, str]) -> str:
    """Replaces each placeholder of a template with its value, percent-encoded as in RFC 6570."""
    for name in placeholder_names(template):
        template = template.replace(f"{{{name}}}", quote(values[name], safe=""))
    return template


@pytest.mark.parametrize(
    "template, text, bindings",
    [
        ("telemetry", "telemetry", {}),
        ("telemetry", "Telemetry", None),
        ("{site}/{device}/state", "berlin/7/state", {"site": "berlin", "device": "7"}),
        ("{site}", "berlin/7", None),  # MS-50: a placeholder matches no slash
        ("{site}/x", "/x", None),  # MS-50: a placeholder is not empty
        ("{a}/{a}", "x/x", {"a": "x"}),
        ("{a}/{a}", "x/y", None),  # CM-13: one name stands for one value
        ("{a}{a}", "xyxy", {"a": "xy"}),
        ("{a}-{b}/{a}", "x-y-z/x-y", {"a": "x-y", "b": "z"}),  # CM-13: the later part decides
        ("{a}-{b}.json", "q-w-e.json", {"a": "q", "b": "w-e"}),
        ("{a}{b}", "xyz", {"a": "x", "b": "yz"}),
        ("{a}{b}", "x", None),
        ("{a}x{b}", "xx", None),
        ("{A}/{a}", "x/y", {"A": "x", "a": "y"}),
        ("{+a}", "x", None),  # CM-12: not a placeholder of level 1, so it is literal text
        ("{+a}", "{+a}", {}),
    ],
)
def test_a_template_fits_a_text_in_one_way(template: str, text: str, bindings: dict[str, str] | None) -> None:
    # MS-50, CM-13
    assert match_templates([(template, text)]) == bindings


def test_templates_of_one_message_share_their_placeholders() -> None:
    # CM-13: an ambiguity in one template is decided by another
    pairs = [("{a}{b}", "xyz"), ("{b}", "z")]
    assert match_templates(pairs) == {"a": "xy", "b": "z"}
    assert match_templates([*pairs, ("{a}", "x")]) is None
    assert match_templates([]) == {}


@given(TEMPLATES, st.fixed_dictionaries({"a": WORDS, "b": WORDS, "C_1": WORDS}))
def test_a_template_matches_what_it_expands_to(template: str, values: dict[str, str]) -> None:
    # CM-13: the bindings that were found expand to the same text
    text = expand(template, values)
    found = match_templates([(template, text)])
    assert found is not None and set(found) == set(placeholder_names(template))
    assert expand(template, found) == text


def test_expansion() -> None:
    assert placeholder_names("{b}/{a}/{b}") == ("b", "a")
    assert expand("/{a}?x={a}", {"a": "ü /"}) == "/%C3%BC%20%2F?x=%C3%BC%20%2F"


@pytest.mark.parametrize(
    "template, count",
    [
        *[("{name}", 0), ("no braces", 0), ("{A_1}{b}", 0), ("{+a}", 1), ("{a,b}", 1), ("{a:3}", 1), ("{a*}", 1)],
        *[("{}", 1), ("{a b}", 1), ("{a-b}", 1), ("{a", 1), ("a}", 1), ("{{a}}", 2), ("{#x}{ok}{?y}", 2), ("{ä}", 1)],
        ("{a%20}", 1),
    ],
)
def test_level_1_only(template: str, count: int) -> None:
    # CM-12: names of letters, digits and underscores; no operators, lists or modifiers
    assert len(template_problems(template)) == count


@pytest.mark.parametrize(
    "template, text",
    [
        ("".join(f"{{a{n}}}x" for n in range(40)) + "!", "x" * 50_000),
        ("{a}x{b}x{c}x{d}{a}", "yx" * 50_000 + "x"),
        ("/".join("{a}{b}{c}{d}" for _ in range(16)), "/".join("x" * 2_000 for _ in range(16))),
        ("{" * 50_000, "x" * 50_000),
        ("/".join(f"{{n{n}}}" for n in range(MAX_PLACEHOLDERS + 1)), "/".join("x" * (MAX_PLACEHOLDERS + 1))),
    ],
)
def test_no_template_takes_long(template: str, text: str) -> None:
    since = thread_time()
    match_templates([(template, text)])
    template_problems(template)
    assert thread_time() - since < 2
