"""Runs the rows of model.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from annals.domain.errors.problems import Problem
from annals.domain.model import Level, Model, compile_model

TABLE = yaml.load(Path(__file__).with_name("model.yaml").read_text(), yaml.CSafeLoader)
XID = "/somewhere"
TIMES = {"createdat": "2025-01-01T00:00:00Z", "modifiedat": "2025-01-01T00:00:00Z"}
#: Attributes that an entity of each level always has, and that rows omit.
BASE: dict[str, dict[str, Any]] = {
    "registry": {"registryid": "r", **TIMES},
    "group": {"dirid": "d", **TIMES},
    "version": {"fileid": "f", "versionid": "1", "ancestorid": "1", **TIMES},
    "meta": {"fileid": "f", "defaultversionid": "1", "readonly": False, "defaultversionsticky": False, **TIMES},
}


def source(row: dict[str, Any]) -> Any:
    if "source" in row:
        return row["source"]
    files = {"singular": "file", "attributes": row.get("version", {}), "metaattributes": row.get("meta", {})}
    dirs = {"singular": "dir", "attributes": row.get("group", {}), "resources": {"files": files | row.get("files", {})}}
    return {"attributes": row.get("registry", {}), "groups": {"dirs": dirs | row.get("dirs", {})}}


def level(model: Model, name: str) -> Level:
    dirs = model.groups["dirs"]
    files = dirs.resources["files"]
    return {"registry": model.registry, "group": dirs.level, "version": files.version, "meta": files.meta}[name]


def row_id(row: dict[str, Any]) -> str:
    return f"{row['rule']} {row['says']}"


@pytest.mark.parametrize("row", TABLE["models"], ids=row_id)
def test_models(row: dict[str, Any]) -> None:
    if "refused" not in row:
        model = compile_model(source(row))
        # MOD-91: a full model is a modelsource of itself
        assert compile_model(model.full).full == model.full
        return
    with pytest.raises(Problem) as caught:
        compile_model(source(row))
    assert caught.value.name == row["refused"]
    arguments = caught.value.arguments
    place = arguments["name"] if "name" in arguments else arguments["error_detail"].partition(": ")[0]
    assert place == row["at"]


@pytest.mark.parametrize("row", TABLE["values"], ids=row_id)
def test_values(row: dict[str, Any]) -> None:
    at = level(compile_model(source(row)), row["level"])
    given = BASE[row["level"]] | row["given"]
    erased = frozenset(row.get("erased", ()))
    if "gives" in row:
        completed = at.complete(given, XID, erased)
        assert completed == BASE[row["level"]] | row["gives"]
        assert at.complete(completed, XID) == completed
        return
    with pytest.raises(Problem) as caught:
        at.complete(given, XID, erased)
    assert caught.value.name == row["refused"]
    for argument in ("name", "list"):
        if argument in row:
            assert caught.value.arguments[argument] == row[argument]
