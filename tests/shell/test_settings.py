"""Settings: where they come from, what they take, and what they show."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from api.settings import Settings, hidden
from tests.shell.conftest import Annals


def test_flags_win_over_the_environment_and_that_over_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, annals: Annals
) -> None:
    (folder / ".env").write_text("ANNALS_PORT=1\nANNALS_REGISTRYID=file\nANNALS_DATABASE=sqlite:///file.db\n")
    monkeypatch.setenv("ANNALS_REGISTRYID", "environment")
    monkeypatch.setenv("ANNALS_DATABASE", "sqlite:///environment.db")
    printed = annals("config", "--database", "sqlite:///flag.db").out
    for line in ("ANNALS_PORT=1", "ANNALS_REGISTRYID=environment", "ANNALS_DATABASE=sqlite:///flag.db"):
        assert line in printed.splitlines()


@pytest.mark.parametrize(
    "url", ["postgresql://me:geheim@host/name", "postgresql://me@host/name?password=geheim&sslpassword=geheim"]
)
def test_passwords_are_never_shown(url: str, annals: Annals) -> None:
    assert "geheim" not in hidden(url)
    printed = annals("config", "--database", url)
    assert "***" in printed.out
    assert "geheim" not in printed.out + printed.err


def test_a_refused_setting_does_not_show_its_password_either(annals: Annals) -> None:
    ended = annals("config", "--database", "mysql://me:geheim@host/name")
    assert ended.code == 2
    assert ended.err.startswith("annals: ANNALS_DATABASE: ")
    assert "geheim" not in ended.err


# In memory SQLite forgets everything with the process, and gives each connection a registry of its own.
@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "annals.db", "mysql://host/name", ""])
def test_a_database_that_keeps_things_is_needed(url: str) -> None:
    with pytest.raises(ValidationError):
        Settings(database=url)


@pytest.mark.parametrize("url", ["example.com", "ftp://example.com", "https://example.com/?a=b", "/registry"])
def test_a_public_url_is_absolute(url: str) -> None:
    with pytest.raises(ValidationError):
        Settings(public_url=url)


def test_a_public_url_loses_its_last_slash() -> None:
    # ENT-40: self is the root and the xid, which starts with a slash of its own.
    assert Settings(public_url="https://example.com/registry/").public_url == "https://example.com/registry"
