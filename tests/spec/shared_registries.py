"""Stages for tables of requests: one for each database, which all rows of a module share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.registries.requests import Stage
from tests.support.stores import schema_of

DATABASES = ("sqlite", "postgresql")


@contextmanager
def staged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, models: Any) -> Iterator[Stage]:
    """A stage on the database that is the fixture's parameter. models: modelsource documents by name."""
    if request.param == "sqlite":
        yield from _on(f"sqlite:///{tmp_path_factory.mktemp('stage') / 'annals.db'}", models)
        return
    with schema_of(request.getfixturevalue("postgres_server")) as url:
        yield from _on(url, models)


def _on(url: str, models: Any) -> Iterator[Stage]:
    stage = Stage(url, models)
    try:
        yield stage
    finally:
        stage.close()
