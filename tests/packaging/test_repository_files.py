"""Forms and workflows are valid, and pages for contributors name only targets, files and scripts that exist."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from typing import Any, Final

import pytest
import yaml

from tests.support.serving import ROOT

#: Files that other programs read, by the name of their published schema.
SCHEMAS: Final = {
    "compose-spec": ["docker-compose.yml"],
    "github-workflows": [".github/workflows/ci.yml", ".github/workflows/release.yml"],
    "github-issue-config": [".github/ISSUE_TEMPLATE/config.yml"],
    "github-issue-forms": [f".github/ISSUE_TEMPLATE/{name}.yml" for name in ("bug", "feature", "question")],
}
#: Pages for people.
PAGES: Final = sorted(file.name for file in ROOT.glob("*.md"))
_TARGET: Final = re.compile(r"^([a-z-]+):", re.MULTILINE)
_MAKE: Final = re.compile(r"(?:`|^ *)make ([a-z-]+)", re.MULTILINE)
_LINK: Final = re.compile(r"\]\(([^):#]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_have_the_form_that_their_readers_expect(schema: str) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *SCHEMAS[schema]]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_every_form_and_workflow_is_checked() -> None:
    found = {str(file.relative_to(ROOT)) for file in (ROOT / ".github").rglob("*.yml")}
    assert found == {file for files in SCHEMAS.values() for file in files if file.startswith(".github/")}


def test_each_change_runs_what_the_project_itself_runs() -> None:
    workflow: dict[Any, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    assert set(workflow[True]) == {"push", "pull_request"}  # YAML 1.1 reads the key `on` as a boolean
    job, project = workflow["jobs"]["run"], tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"run": ".ci/run"} in job["steps"]
    promised = [each.rpartition(" ")[2] for each in project["classifiers"] if "Python :: 3." in each]
    assert job["strategy"]["matrix"]["python"] == promised


def test_compose_builds_the_file_that_is_checked() -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    dockerfile = compose["services"]["annals"]["build"]["dockerfile"]
    assert (ROOT / dockerfile).is_file()
    assert f"--file {dockerfile}" in (ROOT / ".ci" / "image").read_text()


@pytest.mark.parametrize("page", [*PAGES, ".github/pull_request_template.md"])
def test_pages_name_what_exists(page: str) -> None:
    text = (ROOT / page).read_text()
    targets = _TARGET.findall((ROOT / "Makefile").read_text())
    assert [name for name in _MAKE.findall(text) if name not in targets] == []
    assert [target for target in _LINK.findall(text) if not (ROOT / target).exists()] == []


def test_contributing_names_folders_that_exist() -> None:
    named = re.findall(
        r"`((?:domain|commands|projections|api|tests|docs)/[a-z_/.]+)`", (ROOT / "CONTRIBUTING.md").read_text()
    )
    assert len(named) > 5
    assert [name for name in named if not (ROOT / name).exists()] == []
