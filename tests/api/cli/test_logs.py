"""Log lines of verbs and servers: which lines are written, where, and in which format."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from annals.api.cli.setup.log_config import configure_logs
from annals.api.settings.settings import Settings
from tests.support.console import Annals
from tests.support.serving import serving

LEVELS = ("debug", "info", "warning", "error")


@pytest.fixture(autouse=True)
def loggers_of_a_new_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Resets the loggers of uvicorn, which an earlier test of this process may have configured."""
    loggers = [logging.getLogger(name) for name in ("uvicorn", "uvicorn.error")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.NOTSET)
        monkeypatch.setattr(logger, "handlers", [])
        monkeypatch.setattr(logger, "propagate", True)
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


@pytest.mark.parametrize("level", LEVELS)
def test_the_level_governs_the_lines_of_annals_and_its_server(level: str, capfd: pytest.CaptureFixture[str]) -> None:
    configure_logs(Settings(log_level=level, log_format="json"))
    for name in ("annals.store", "uvicorn.error", "httpcore"):
        for each in LEVELS:
            logging.getLogger(name).log(logging.getLevelNamesMapping()[each.upper()], "said %d", 1)
    printed = capfd.readouterr()
    found = {(line["logger"], line["level"]) for line in map(json.loads, printed.err.splitlines())}
    own = {(name, each) for name in ("annals.store", "uvicorn.error") for each in LEVELS[LEVELS.index(level) :]}
    # Libraries stay at `warning`: at `debug`, HTTP clients would log the credentials that they send.
    assert found == own | {("httpcore", "warning"), ("httpcore", "error")}
    assert printed.out == ""


def test_json_is_one_object_per_line(capfd: pytest.CaptureFixture[str]) -> None:
    configure_logs(Settings(log_format="json"))
    try:
        raise ValueError("two\nlines")
    except ValueError:
        logging.getLogger("annals.x").exception("it\nfailed", extra={"path": "/a", "status": 500})
    [line] = map(json.loads, capfd.readouterr().err.splitlines())
    assert [*line][:4] == ["time", "level", "logger", "event"]
    assert (line["event"], line["path"], line["status"]) == ("it\nfailed", "/a", 500)
    assert line["exception"].startswith("Traceback") and "two\nlines" in line["exception"]


def test_a_value_cannot_forge_a_line_or_control_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    configure_logs(Settings())
    logging.getLogger("annals.x").warning(
        "a remote said: %s", "no\nannals: all is well", extra={"caller": "a b\x1b[2J"}
    )
    [line] = capfd.readouterr().err.splitlines()
    assert "no\\nannals" in line and "\x1b" not in line and "\\x1b[2J" in line


def test_a_traceback_has_no_values_of_variables(capfd: pytest.CaptureFixture[str]) -> None:
    configure_logs(Settings())
    secret = "sword" + "fish"
    try:
        raise ValueError(len(secret))
    except ValueError:
        logging.getLogger("annals.x").exception("failed")
    printed = capfd.readouterr().err
    assert "Traceback" in printed and "swordfish" not in printed


def test_a_verb_ends_with_a_json_line_too(annals: Annals, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANNALS_LOG_FORMAT", "JSON")
    ended = annals("export", "--database", "sqlite:///missing.db")
    line = json.loads(ended.err)
    assert (ended.code, line["level"], line["event"].startswith("there is no store")) == (3, "error", True)


def test_a_server(tmp_path: Path) -> None:
    """All lines of a server are JSON: those of its start, its requests and its end."""
    with serving(f"sqlite:///{tmp_path / 'a.db'}", tmp_path, ANNALS_LOG_FORMAT="json") as served:
        assert httpx.get(f"{served.url}/-/livez?token=geheim").status_code == 200
    printed = (tmp_path / "serve.log").read_text()
    found = [(line["logger"], line["event"]) for line in map(json.loads, printed.splitlines())]
    assert [event for name, event in found if name == "annals.access"] == ["request"]
    assert any(event.startswith("Annals serves") for _, event in found)
    assert ("uvicorn.error", "Application startup complete.") in found
    assert "geheim" not in printed and "color_message" not in printed


def test_a_server_that_is_quiet(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path / 'a.db'}", tmp_path, ANNALS_LOG_LEVEL="error") as served:
        httpx.get(f"{served.url}/-/livez")
    assert (tmp_path / "serve.log").read_text().splitlines() == [
        f"Annals serves {served.url} from sqlite:///{tmp_path / 'a.db'}"
    ]
