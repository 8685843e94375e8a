"""Arguments and settings that are not UTF-8 result in one line that names them; names of files may have any bytes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from annals.api.cli.outcome import ExitCode
from tests.support.console import Annals

#: What Python makes of the bytes FF FE.
BYTES = os.fsdecode(b"\xff\xfe")
REFUSED = {
    "log history ?": "PATH",
    "log hash ?": "PATH",
    "log hash --asof ?": "--asof",
    "log diff ? --from 1": "PATH",
    "log interaction ?": "ID",
    "keys add ci --role reader --description ?": "--description",
    "keys revoke ?": "ID",
    "keys rotate ?": "ID",
    "grants remove ?": "ID",
    "subscriptions show ?": "ID",
    "subscriptions delete ?": "ID",
    "subscriptions replay ? --from 1": "ID",
    "subscriptions redeliver a b ?": "SEQUENCE...",
    "replicate show ?": "ID",
    "passwd ?": "NAME",
    "export --database sqlite:///?.db": "--database",
}


@pytest.fixture
def data(annals: Annals, folder: Path) -> str:
    """A document of a registry, which is also imported."""
    (folder / "data.json").write_text('{"schemagroups": {"g": {}}}')
    assert annals("import", "data.json").code == ExitCode.DONE
    return "data.json"


@pytest.mark.parametrize(("words", "name"), REFUSED.items(), ids=REFUSED)
@pytest.mark.usefixtures("data")
def test_an_argument_that_is_not_text(annals: Annals, words: str, name: str) -> None:
    ended = annals(*words.replace("?", BYTES).split())
    assert (ended.code, ended.out, ended.err.count("\n")) == (ExitCode.USAGE, "", 1)
    assert ended.err.startswith(f"annals: invalid value for '{name}': it is not UTF-8 text. See `annals ")


@pytest.mark.parametrize("name", ["ANNALS_DATABASE", "annals_database", "ANNALS_TOKEN"])
@pytest.mark.parametrize("verb", ["config", "log hash"])
def test_a_setting_that_is_not_text(annals: Annals, monkeypatch: pytest.MonkeyPatch, name: str, verb: str) -> None:
    monkeypatch.setenv(name, f"secret{BYTES}")
    ended = annals(*verb.split())
    assert ended == (ExitCode.USAGE, "", f"annals: {name}: the variable is not UTF-8 text.\n")
    assert annals("--version").code == ExitCode.DONE


def test_other_variables_may_have_any_bytes(annals: Annals, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER", BYTES)
    assert annals("config").code == ExitCode.DONE


def test_files_may_have_any_names(annals: Annals, folder: Path, data: str) -> None:
    exported, imported = folder / f"{BYTES}.json", folder / f"a{BYTES}.json"
    assert annals("export", "--output", exported).code == ExitCode.DONE
    assert "g" in json.loads(exported.read_text())["schemagroups"]
    imported.write_text('{"schemagroups": {"h": {}}}')
    assert annals("import", imported).code == ExitCode.DONE
