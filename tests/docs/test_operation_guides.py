"""The guides to backups, upgrades and migration do what they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import httpx

from tests.support.polling import until
from tests.support.serving import ROOT, Served, serving
from tests.test_readme import Step, pattern, run

_BLOCK: Final = re.compile(r"```sh\n(?P<commands>.*?)```\n```text\n(?P<output>.*?)```\n", re.DOTALL)
_OLD: Final = "http://127.0.0.1:8081"
#: Commands that may be repeated until a link has copied everything.
_LOOKS: Final = ".venv/bin/annals replicate status"
_FILES: Final = {"groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file"}}}}}


def follow(name: str, server: Served, database: str, cwd: Path, old: str = "") -> None:
    """Runs the commands of a guide, and compares what they print. old: the URL of a second registry."""
    text = (ROOT / "docs" / "guides" / name).read_text()
    blocks = [*_BLOCK.finditer(text)]
    assert len(blocks) == text.count("```sh") > 0
    for block in blocks:
        step = Step(block["commands"].strip().replace(_OLD, old or _OLD), block["output"])
        printed = [run(step, server.url, database, cwd)]

        def agrees(step: Step = step, printed: list[str] = printed) -> bool:
            if re.fullmatch(pattern(step.output), printed[-1].strip()):
                return True
            if step.commands.startswith(_LOOKS):
                printed.append(run(step, server.url, database, cwd))
                return False
            raise AssertionError(f"{step.commands}\nprints\n{printed[-1]}")

        until(agrees, 30)


def test_backup_and_upgrade(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'annals.db'}"
    with serving(database, tmp_path) as server:
        follow("backup.md", server, database, tmp_path)
        follow("upgrade.md", server, database, tmp_path)
    assert (tmp_path / "restored.json").read_text().startswith('{"specversion"')


def test_migration(tmp_path: Path) -> None:
    """The old server is another registry of ours, which shows another version of the specification."""
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    here, there = (f"sqlite:///{tmp_path / name / 'annals.db'}" for name in ("new", "old"))
    allow = {"ANNALS_SINKS_ALLOW": "127.0.0.1"}
    with serving(there, tmp_path / "old") as old, serving(here, tmp_path / "new", **allow) as new:
        httpx.put(f"{old.url}/modelsource", json=_FILES).raise_for_status()
        for text in ("hello", "hello again"):
            kind = {"Content-Type": "text/plain"}
            httpx.post(f"{old.url}/dirs/d/files/f", content=text, headers=kind).raise_for_status()
        follow("migrate.md", new, here, tmp_path / "new", old.url)
        versions = [httpx.get(f"{url}/dirs/d/files/f/versions").json() for url in (old.url, new.url)]
    kept = ("versionid", "createdat", "modifiedat", "ancestorid", "contenttype", "isdefault")
    before, after = ([{name: row[name] for name in kept} for row in found.values()] for found in versions)
    assert before == after
