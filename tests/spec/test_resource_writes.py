"""Runs resource_writes.yaml (ENT-93): `given` writes, one more write in `when`, then all Versions and the meta."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from annals.domain.decisions.commands import WriteMethod, WriteTree
from annals.domain.errors.problems import Problem
from tests.support.registries.memory import MemoryRegistry

MODEL = {
    "groups": {
        "dirs": {
            "singular": "dir",
            "resources": {
                "files": {
                    "singular": "file",
                    "hasdocument": False,
                    "versionmode": "createdat",
                    "singleversionroot": True,
                }
            },
        }
    }
}
FILE = "/dirs/d1/files/f1"
ROWS = yaml.load(Path(__file__).with_name("resource_writes.yaml").read_text(), yaml.CSafeLoader)


@pytest.mark.parametrize("row", ROWS, ids=[f"ENT-93/{row['id']} {row['rule']}" for row in ROWS])
def test_writing_a_resource(row: dict[str, Any]) -> None:
    registry = MemoryRegistry(MODEL)
    for write in row.get("given", []):
        registry.do(command(*write))
    before = len(registry.log)
    if "problem" in row["then"]:
        with pytest.raises(Problem) as refused:
            registry.do(command(*row["when"]))
        assert refused.value.name == row["then"]["problem"]
        assert len(registry.log) == before
    else:
        registry.do(command(*row["when"]))
        assert outcome(registry) == row["then"]


def outcome(registry: MemoryRegistry) -> dict[str, Any]:
    """The state of the registry, in the form of a `then`."""
    meta = registry.meta(FILE)
    versions = {id: entity.attributes for id, entity in registry.versions(FILE).items()}
    resource = registry.get(FILE).attributes
    default = versions[meta["defaultversionid"]]
    assert {name: resource[name] for name in default} == default  # a Resource has the attributes of its default Version
    assert [id for id, version in versions.items() if version["isdefault"]] == [meta["defaultversionid"]]
    return {
        "versions": {id: [v["ancestorid"], v["epoch"], v.get("name")] for id, v in versions.items()},
        "default": meta["defaultversionid"],
        "sticky": meta["defaultversionsticky"],
        "meta": meta["epoch"],
    }


def command(method: str, tree: dict[str, Any], default: str | None = None) -> WriteTree:
    verb, _, place = method.partition("-")
    xid = {"": FILE, "META": FILE + "/meta", "VERSIONS": FILE + "/versions", "COLLECTION": "/dirs/d1/files"}[place]
    body = {"f1": dated(tree)} if place == "COLLECTION" else dated(tree)
    return WriteTree(xid, body, WriteMethod(verb), setdefaultversionid=default)


def dated(tree: Any) -> Any:
    """A value with years replaced by timestamps."""
    if isinstance(tree, dict):
        return {key: dated(value) for key, value in tree.items()}
    return f"{tree}-01-01T00:00:00Z" if isinstance(tree, int) and not isinstance(tree, bool) else tree
