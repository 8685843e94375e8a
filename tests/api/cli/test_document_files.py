"""What imports leave of a modelsource, and settings that are refused because they could do harm."""

from __future__ import annotations

from typing import Any

import pytest

from annals.api.auth.tokens import parse_fixed_tokens
from annals.api.cli.document_files import merge_modelsource
from annals.api.cli.options import sqlite_file
from annals.api.settings.settings import Settings

CURRENT: dict[str, Any] = {"attributes": {"a": {"type": "string"}}, "groups": {"dirs": {"singular": "dir"}}}


@pytest.mark.parametrize(
    ("given", "merged"),
    [
        ({"groups": {"dirs": None, "boxes": {"singular": "box"}}}, {"boxes": {"singular": "box"}}),
        ({"groups": None, "attributes": None}, {}),
    ],
)
def test_an_import_removes_nothing(given: dict[str, Any], merged: dict[str, Any]) -> None:
    assert merge_modelsource(CURRENT, given) == {**CURRENT, "groups": {**CURRENT["groups"], **merged}}


@pytest.mark.parametrize("groups", [5, [], "dirs"])
def test_wrong_types_are_left_to_the_check_of_the_model(groups: Any) -> None:
    assert merge_modelsource(CURRENT, {"groups": groups})["groups"] == groups


@pytest.mark.parametrize("url", ["sqlite:///dir/a%20b.db", "sqlite:///file:dir/a%20b.db?uri=true"])
def test_the_file_of_a_store(url: str) -> None:
    """It is known in each form of a URL, so that no output replaces it."""
    file = sqlite_file(Settings(database=url))
    assert file is not None and str(file).replace("%20", " ") == "dir/a b.db"


def test_options_that_sqlite_ignores() -> None:
    """They are options of a URI only, so a store that was to be read alone would be written."""
    with pytest.raises(ValueError, match="a URL such as"):
        Settings(database="sqlite:///a.db?mode=ro")
    assert Settings(database="sqlite:///file:a.db?mode=ro&uri=true").database


@pytest.mark.parametrize("token", ["", "sha256:", "sha256:zz"])
def test_tokens_that_no_caller_has(token: str) -> None:
    """ACC-14: they are refused at the start."""
    with pytest.raises(ValueError, match=r"token|hex"):
        parse_fixed_tokens(f'{{"{token}": {{"name": "x", "role": "reader"}}}}')
