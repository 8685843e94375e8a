"""A server that starts on the store of an older release logs its progress."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from annals.api.registry import start_progress
from annals.api.registry.open_registry import open_registry
from annals.api.settings.settings import Settings
from annals.commands.store.database.migrations import STEPS
from tests.support.old_stores import EVENTS, write_old_store


def test_each_step_and_the_rebuild_are_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start_progress, "LINE_SECONDS", 0)
    url = f"sqlite:///{tmp_path}/old.db"
    write_old_store(url, "2")
    with caplog.at_level(logging.INFO, "annals.store"):
        open_registry(Settings(database=url)).close()
    steps = [f"upgrading the store to schema {step.schema}: {step.name}" for step in STEPS]
    assert caplog.messages[: len(steps)] == steps
    assert f"rebuilding the read model: {EVENTS} of {EVENTS} events" in caplog.messages[len(steps) :]
