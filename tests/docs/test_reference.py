"""The generated pages of docs/reference are up to date and complete."""

from __future__ import annotations

import re

import pytest

from annals.api.openapi.problem_causes import problem_causes
from annals.api.openapi.problems import ALL_PROBLEM_TYPES
from annals.api.settings.settings import ENV_PREFIX, Settings
from docs.generate.__main__ import FOLDER, PAGES
from docs.generate.command_line import verb_paths
from docs.generate.markdown import cell
from tests.support.serving import ROOT


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_up_to_date(name: str) -> None:
    assert FOLDER.joinpath(name).read_text() == PAGES[name](), "run: python -m docs.generate"


def test_each_error_type_has_a_cause_and_a_cure() -> None:
    explained = problem_causes()
    assert set(explained) == {kind.name for kind in ALL_PROBLEM_TYPES}
    for name, texts in explained.items():
        assert all(text.endswith(".") and text.count("`") % 2 == 0 for text in (texts.cause, texts.cures)), name


def test_cures_name_settings_that_exist() -> None:
    named = {
        name for texts in problem_causes().values() for name in re.findall(rf"{ENV_PREFIX}[A-Z_]+", " ".join(texts))
    }
    assert named <= {ENV_PREFIX + name.upper() for name in Settings.model_fields}


def test_each_error_type_has_an_anchor() -> None:
    """The fragment of each `type` URL is the anchor of its entry, on the site and on a code host."""
    headings = re.findall(r"^### (\S+)$", FOLDER.joinpath("errors.md").read_text(), re.MULTILINE)
    assert sorted(headings) == sorted(kind.name for kind in ALL_PROBLEM_TYPES)


def test_readme_names_every_verb() -> None:
    table = (ROOT / "README.md").read_text().split("## The console command")[1].split("\n## ")[0]
    assert [verb for verb in verb_paths() if not re.search(rf"^\|.*`{verb}[` ].*\|.*\|$", table, re.MULTILINE)] == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a | b", "a \\| b"),
        ("`a|<b>`", "<code>a&#124;&lt;b&gt;</code>"),
        ("`<a>` and <b>\nc", "`<a>` and &lt;b> c"),
        ("", ""),
    ],
)
def test_cells_of_tables(text: str, shown: str) -> None:
    assert cell(text) == shown
