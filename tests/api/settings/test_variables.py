"""Each variable that the product reads is a setting that `annals config` and the reference list."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic_settings import BaseSettings

from annals.api.cli.setup.settings_classes import SETTINGS_CLASSES, variable_names

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("domain", "commands", "projections", "api", "spark_projections")
#: A variable; not a common prefix of several, such as `ANNALS_KAFKA_`.
VARIABLE = re.compile(r"\bANNALS_[A-Z0-9_]*[A-Z0-9]\b(?!_)")
#: Variables of the service that docker-compose.yml runs and of the tests.
OTHERS = re.compile(r"ANNALS_(TEST|BENCH)_\w+|ANNALS_SPEC_DATA")


def files() -> Iterator[Path]:
    for folder in FOLDERS:
        yield from (file for file in (ROOT / folder).rglob("*") if file.suffix in (".py", ".yaml", ".json", ".html"))
    yield ROOT / "docker-compose.yml"
    yield ROOT / "README.md"
    yield from (ROOT / "docs").rglob("*.md")


def test_no_variable_is_unlisted() -> None:
    found = {name: file for file in files() for name in VARIABLE.findall(file.read_text())}
    assert len(found) > 50
    unlisted = {name: str(file) for name, file in found.items() if name not in set(variable_names())}
    assert {name: file for name, file in unlisted.items() if not OTHERS.fullmatch(name)} == {}


def test_no_class_of_settings_is_unlisted() -> None:
    defined = {kind for kind in BaseSettings.__subclasses__() if kind.__module__.startswith("annals.")}
    assert defined == set(SETTINGS_CLASSES)


@pytest.mark.parametrize("kind", SETTINGS_CLASSES)
def test_each_setting_has_a_description(kind: type[BaseSettings]) -> None:
    assert [name for name, field in kind.model_fields.items() if not field.description] == []
