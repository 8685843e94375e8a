"""Runs changes.yaml: the events that an interaction records, and their lists of changes (EV-35 to EV-92)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from annals.domain.decisions.commands import Command, DeleteEntities, WriteMethod, WriteTree
from annals.domain.decisions.world import Decision
from annals.domain.errors.problems import Problem
from annals.domain.values.xid import event_order
from tests.support.registries.memory import MemoryRegistry

PLAIN = {"hasdocument": False}
MODEL = {
    "groups": {
        "shelves": {
            "singular": "shelf",
            "resources": {
                "books": {"singular": "book", **PLAIN},
                "scans": {"singular": "scan", "attributes": {"*": {"type": "any"}}},
                "pairs": {"singular": "pair", "maxversions": 2, **PLAIN},
                "lone": {"singular": "single", "maxversions": 1, **PLAIN},
                "logs": {"singular": "log", "versionmode": "modifiedat", "singleversionroot": True, **PLAIN},
                "years": {"singular": "year", "versionmode": "createdat", "singleversionroot": True, **PLAIN},
            },
        },
        "carts": {"singular": "cart", "ximportresources": ["/shelves/books"]},
    }
}
MACROS = {"TOUCH": "epoch modifiedat", "MTOUCH": "meta.epoch meta.modifiedat"}
TOLERATED = re.compile(r"(self|shortself|xid|\w+id|\w+url|isdefault|meta\.(self|xid|defaultversionurl))$")
KEPT = {"versionid", "ancestorid", "meta.defaultversionid", "scanurl"}
ROWS = yaml.load(Path(__file__).with_name("changes.yaml").read_text(), yaml.CSafeLoader)


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['id']} {row['rule']}" for row in ROWS])
def test_what_an_interaction_records(row: dict[str, Any]) -> None:
    registry = MemoryRegistry(MODEL)
    for write in row.get("given", []):
        registry.do(command(*write))
    names = {id: set(entity.attributes) for id, entity in _versions(registry, row["when"][1]).items()}
    if isinstance(row["then"], str):
        with pytest.raises(Problem) as refused:
            registry.do(command(*row["when"]))
        assert refused.value.name == row["then"]
        return
    decision = registry.do(command(*row["when"]))
    names |= {id: set(entity.attributes) for id, entity in _versions(registry, row["when"][1]).items()}
    assert recorded(decision) == {path(key): expected(value, names) for key, value in row["then"].items()}
    assert deprecations(decision) == {path(key): tuple(value) for key, value in row.get("deprecated", {}).items()}
    xids = [event.xid for event in decision.events]
    assert xids == sorted(set(xids), key=event_order)  # EV-70, EV-77: one event for each entity, in tree order


def recorded(decision: Decision) -> dict[str, Any]:
    actions: dict[str, Any] = {}
    for event in decision.events:
        kind = type(event).__name__.removeprefix("Entity").lower()
        actions[event.xid] = significant(event.changed) if kind == "updated" else kind
        assert kind in ("updated", "refreshed") or event.changed == ()  # EV-38
        assert not {name for name in event.changed if name.endswith("id") and name not in KEPT}  # ENT-32: ids stay
        assert list(event.changed) == sorted(event.changed, key=lambda n: (n.startswith("meta."), n))  # EV-46
    return actions


def deprecations(decision: Decision) -> dict[str, Any]:
    return {e.xid: e.deprecated_changed for e in decision.events if e.deprecated_changed is not None}


def expected(text: str, names: dict[str, set[str]]) -> Any:
    if text in ("created", "deleted", "refreshed"):
        return text
    found: set[str] = set()
    for word in text.split():
        if word.startswith("DV("):
            for version in word[3:-1].split(","):
                found |= names[version]
        else:
            found |= set(MACROS.get(word, word).split())
    return significant(found)


def significant(names: Any) -> set[str]:
    return {name for name in names if name in KEPT or not TOLERATED.match(name)}


def path(short: str) -> str:
    return re.sub(r"^b(?=/|$)", "/shelves/s1/books/b1", re.sub(r"^s(?=/|$)", "/shelves/s1", short))


def command(method: str, where: str, body: Any = None, flags: dict[str, Any] | None = None) -> Command:
    if method == "DELETE":
        return DeleteEntities(path(where), body, **(flags or {}))
    return WriteTree(path(where), body, WriteMethod(method), **(flags or {}))


def _versions(registry: MemoryRegistry, where: str) -> dict[str, Any]:
    parts = path(where).split("/")
    return registry.versions("/".join(parts[:5])) if len(parts) >= 5 else {}
