"""The pre-commit hooks run the same commands as `make check`, whose link check fails if a link is dead."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.serving import ROOT

#: The configuration of a site with one page, based on the project's.
_SITE = f"""
INHERIT: {ROOT}/mkdocs.yml
docs_dir: docs
nav: [README.md]
hooks: [{ROOT}/docs/generate/source_links.py]
"""


def commands(make: str) -> list[str]:
    """The commands that a call of make would run if the environment is up to date."""
    call = [*make.split(), "--dry-run", "--no-print-directory", "--old-file=.venv/.dev", "VENV=.venv"]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_hooks_run_what_make_check_runs() -> None:
    (local,) = yaml.safe_load(ROOT.joinpath(".pre-commit-config.yaml").read_text())["repos"]
    run_by_hooks = [command for hook in local["hooks"] for command in commands(hook["entry"])]
    assert len(local["hooks"]) > 1
    assert run_by_hooks == commands("make check")


def test_hooks_check_the_whole_project() -> None:
    """A renamed identifier or heading can break a link or a type in a file that is not part of the commit."""
    (local,) = yaml.safe_load(ROOT.joinpath(".pre-commit-config.yaml").read_text())["repos"]
    for hook in local["hooks"]:
        assert hook["always_run"] and not hook["pass_filenames"], hook["id"]
        assert hook["language"] == "system", "the tools are those of the project's environment"


@pytest.mark.parametrize(("page", "dead"), [("docs/README.md", True), ("README.md", True), ("README.md", False)])
def test_check_links(page: str, dead: bool, tmp_path: Path) -> None:
    """MkDocs in strict mode fails only for warnings that it logs, so the command must not use `--quiet`."""
    pytest.importorskip("mkdocs", reason="the extra docs is not installed")
    tmp_path.joinpath("docs").mkdir()
    for name in ("README.md", "docs/README.md"):
        tmp_path.joinpath(name).write_text("# Page\n")
    tmp_path.joinpath(page).write_text(f"# Page\n\n[link]({'nothing' if dead else 'README'}.md)\n")
    tmp_path.joinpath("mkdocs.yml").write_text(_SITE)
    (command,) = commands(f"make check-links BIN={sys.prefix}/bin")
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode != 0) == dead, done.stderr
