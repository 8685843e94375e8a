"""The hooks of pre-commit run what `make check` runs."""

from __future__ import annotations

import subprocess

import yaml

from tests.support.serving import ROOT


def commands(make: str) -> list[str]:
    """What a call of make would run, where the environment is up to date."""
    call = [*make.split(), "--dry-run", "--no-print-directory", "--old-file=.venv/.dev", "VENV=.venv"]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_hooks_run_what_make_check_runs() -> None:
    (local,) = yaml.safe_load(ROOT.joinpath(".pre-commit-config.yaml").read_text())["repos"]
    run_by_hooks = [command for hook in local["hooks"] for command in commands(hook["entry"])]
    assert len(local["hooks"]) > 1
    assert run_by_hooks == commands("make check")


def test_hooks_check_the_whole_project() -> None:
    """A changed name can make a link dead, or a type wrong, in a file that is not part of the commit."""
    (local,) = yaml.safe_load(ROOT.joinpath(".pre-commit-config.yaml").read_text())["repos"]
    for hook in local["hooks"]:
        assert hook["always_run"] and not hook["pass_filenames"], hook["id"]
        assert hook["language"] == "system", "the tools are those of the project's environment"
