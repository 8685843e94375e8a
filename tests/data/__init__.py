"""Documents for tests: our own, and published ones if a checkout of the specification is available."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

OURS: Final = Path(__file__).parent
MODELS: Final = OURS / "models"
#: A checkout of the specification's repository; without it, tests have no parameters for published documents.
SPEC: Final = Path(os.environ["ANNALS_SPEC_DATA"]) if os.environ.get("ANNALS_SPEC_DATA") else None


def _scenarios() -> dict[str, Path]:
    folders = [OURS / "scenarios", *([SPEC / "cloudevents" / "samples" / "scenarios"] if SPEC is not None else [])]
    found = [path for folder in folders for path in sorted(folder.glob("*.xreg.json"))]
    return {path.name.removesuffix(".xreg.json"): path for path in found}


#: Documents with endpoints, messages and schemas for a registry with the built-in models, by name.
SCENARIOS: Final = _scenarios()
#: The scenarios with a schema of two Versions, the second of which requires one more property.
HISTORIES: Final = [name for name in SCENARIOS if name in ("parcels-jsons07", "watchkam-jsons07")]


def _stores() -> dict[str, tuple[Path, Path]]:
    found = {name: (MODELS / f"{name}-model.json", MODELS / f"{name}-data.json") for name in ("letters", "scores")}
    if SPEC is not None:
        folder = SPEC / "core" / "samples"
        for name in ("doc-store", "formatted-doc-store"):
            found[name] = folder / f"{name}-model.json", folder / f"{name}-data.json"
    return found


#: Models of Resources with documents, one with a type named `format`, and data for each.
STORES: Final = _stores()

#: A message definition in each format for which Message Catalog 0.1 has rules, by the name of the format.
DEFINITIONS: Final = {path.stem: path for path in sorted((OURS / "definitions").glob("*.json"))}

#: A small model and its expansion: ours as rows, the published one as a model.
EXPANSIONS: Final = {"letters": (MODELS / "letters-model.json", MODELS / "letters-full.json")}
if SPEC is not None:
    EXPANSIONS["published"] = SPEC / "core" / "sample-model.json", SPEC / "core" / "sample-model-full.json"


def read(path: Path) -> Any:
    """The value of a JSON file."""
    return json.loads(path.read_text("utf-8"))


def read_from_folder(folder: Path) -> Callable[[str], Any]:
    """A reader of JSON files by their names relative to a folder, for the includes of a model in that folder."""
    return lambda name: read(folder / name)


def with_two_versions(document: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """The xid of the schema with two Versions, and its Versions, older first. document: one of HISTORIES."""
    (found,) = (
        (f"/schemagroups/{group}/schemas/{id}", [schema["versions"][version] for version in sorted(schema["versions"])])
        for group, members in document["schemagroups"].items()
        for id, schema in members["schemas"].items()
        if len(schema["versions"]) == 2
    )
    return found
