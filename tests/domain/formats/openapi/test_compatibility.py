"""Compatible changes of an API, by table, by version of OpenAPI, and compared with another program.

SC-36, SC-39: the independent implementation is oasdiff, from the Go module proxy.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from annals.domain.formats import openapi
from annals.domain.formats.contract import Incompatibility
from tests.domain.formats.openapi.test_openapi import merge_patch
from tests.support.left_out import leave_out

TABLE: Final[dict[str, Any]] = yaml.load((Path(__file__).parent / "changes.yaml").read_text(), yaml.CSafeLoader)
OASDIFF: Final = "github.com/oasdiff/oasdiff@v1.11.8"
ROWS: Final = [pytest.param(row, id=row["what"]) for row in TABLE["changes"]]


def document(row: dict[str, Any], side: str) -> Any:
    """Returns the document of one side of a row."""
    over = row[side]
    if row.get("of") != "document":
        over = {"paths": {"/a/{id}": {"get": over}}}
    return merge_patch(over, TABLE["base"])


def parsed(value: Any) -> Any:
    version = value.get("swagger") or value["openapi"]
    return openapi.parse(json.dumps(value).encode(), f"openapi/{version}")


def verdict(older: Any, newer: Any) -> tuple[str, Sequence[Incompatibility]]:
    """Returns the directions in which a change is allowed, and the reasons against the others."""
    before, after = parsed(older), parsed(newer)
    backward, forward = openapi.incompatibilities(after, before), openapi.incompatibilities(before, after)
    return "B" * (not backward) + "F" * (not forward), [*backward, *forward]


@pytest.mark.parametrize("row", ROWS)
def test_a_change(row: dict[str, Any]) -> None:
    # SC-36, applied to clients: a client of the older document works with a newer server (B), or the reverse (F)
    allowed, reasons = verdict(document(row, "older"), document(row, "newer"))
    assert allowed == row["allowed"], reasons
    assert row.get("rule") in {None, *(one.rule for one in reasons)}, reasons
    assert all(one.reader is not None and one.writer is not None for one in reasons), reasons
    assert not any(word in one.text for one in reasons for word in ("reader", "writer")), reasons


@pytest.mark.parametrize("version", ["3.1.0", "3.2.0"])
@pytest.mark.parametrize("row", ROWS)
def test_a_change_in_newer_versions(row: dict[str, Any], version: str) -> None:
    def newer(value: Any) -> Any:
        """Converts a document to the version, in which null is a type."""
        if isinstance(value, list):
            return [newer(item) for item in value]
        if not isinstance(value, dict):
            return value
        members = {name: newer(member) for name, member in value.items() if name != "nullable"}
        if value.get("nullable"):
            members["type"] = [value["type"], "null"]
        return members

    sides = [newer(document(row, side)) | {"openapi": version} for side in ("older", "newer")]
    assert verdict(*sides)[0] == row["allowed"]


def swagger(parameters: list[Any], **operation: Any) -> Any:
    """Returns a document of version 2.0."""
    responses = {"200": {"description": "x", "schema": {"type": "string"}}}
    post = {"parameters": parameters, "responses": responses, **operation}
    return {
        **{"swagger": "2.0", "info": {"title": "t", "version": "1"}, "consumes": ["application/json"]},
        **{"produces": ["application/json"], "paths": {"/a": {"post": post}}},
    }


TEXT = {"name": "q", "in": "query", "type": "string"}
BODY: dict[str, Any] = {
    "name": "b",
    "in": "body",
    "schema": {"type": "object", "properties": {"a": {"type": "string"}}},
}
FORM = {"name": "f", "in": "formData", "type": "string"}
SWAGGERS = [
    pytest.param(swagger([TEXT]), swagger([TEXT | {"required": True}]), "F", id="a parameter becomes required"),
    pytest.param(swagger([TEXT]), swagger([TEXT | {"maxLength": 3}]), "F", id="a bound"),
    pytest.param(swagger([]), swagger([BODY | {"required": True}]), "", id="a required body"),
    pytest.param(
        swagger([BODY]), swagger([BODY | {"schema": BODY["schema"] | {"required": ["a"]}}]), "F", id="a member"
    ),
    pytest.param(swagger([FORM]), swagger([FORM | {"type": "integer"}]), "", id="a field of a form"),
    pytest.param(swagger([]), swagger([], produces=["text/plain"]), "", id="another media type"),
    pytest.param(swagger([FORM]), swagger([FORM | {"type": "file"}]), "B", id="a file"),
    pytest.param(
        swagger([]), swagger([], responses={"200": {"description": "x", "schema": {"type": "integer"}}}), "", id="type"
    ),
]


@pytest.mark.parametrize(("older", "newer", "allowed"), SWAGGERS)
def test_a_change_in_version_2(older: Any, newer: Any, allowed: str) -> None:
    assert verdict(older, newer)[0] == allowed


@pytest.fixture(scope="session")
def oasdiff(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds oasdiff. Skips the test without Go or without the module."""
    go = shutil.which("go")
    if go is None:
        leave_out("no go: apt-get install golang, or put go on PATH")
    place = tmp_path_factory.mktemp("oasdiff")
    environment = os.environ | {"GOBIN": str(place), "GOFLAGS": "-p=2"}
    try:
        done = subprocess.run(
            [go, "install", OASDIFF], cwd=place, env=environment, capture_output=True, text=True, timeout=500
        )
    except subprocess.TimeoutExpired:
        leave_out("go cannot build oasdiff in time")
    if done.returncode:
        leave_out(f"go cannot build oasdiff: {done.stderr[-500:]}")
    return place / "oasdiff"


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.uses("Go")
def test_oasdiff_agrees(oasdiff: Path, tmp_path: Path) -> None:
    # SC-39: another implementation agrees on breaking changes, or the table has the reason for the difference
    def breaks(older: Any, newer: Any) -> bool:
        for name, value in (("older", older), ("newer", newer)):
            (tmp_path / f"{name}.json").write_text(json.dumps(value))
        command: list[str | Path] = [
            oasdiff,
            "breaking",
            "older.json",
            "newer.json",
            "--format",
            "json",
            "--fail-on",
            "ERR",
        ]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode in (0, 1), done.stderr
        return done.returncode == 1

    wrong = {}
    for row in TABLE["changes"]:
        expected = row.get("oasdiff", row)["allowed"]
        if expected is not None:
            older, newer = document(row, "older"), document(row, "newer")
            found = "B" * (not breaks(older, newer)) + "F" * (not breaks(newer, older))
            if found != expected:
                wrong[row["what"]] = found
    assert not wrong
