"""A registry for each database, shared by all rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.registries.requests import ReusableRegistry
from tests.support.stores import schema_of

DATABASES = ("sqlite", "postgresql")


@contextmanager
def reusable_registry(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, models: Any
) -> Iterator[ReusableRegistry]:
    """A registry on the database that the parameter of the fixture names. models: modelsource documents by name."""
    if request.param == "sqlite":
        yield from _on(f"sqlite:///{tmp_path_factory.mktemp('stage') / 'annals.db'}", models)
        return
    with schema_of(request.getfixturevalue("postgres_server")) as url:
        yield from _on(url, models)


def _on(url: str, models: Any) -> Iterator[ReusableRegistry]:
    stage = ReusableRegistry(url, models)
    try:
        yield stage
    finally:
        stage.close()
