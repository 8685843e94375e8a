"""Resources with an xref at a past moment are those that a scan finds, but no other Resources are read."""

from __future__ import annotations

import random
from contextlib import closing
from typing import Any

from annals.commands.store.log import Store
from annals.domain.model.builtin import default_source
from annals.projections.database import drivers
from annals.projections.entities.view import PastView
from annals.projections.entities.xref import xref_of
from tests.support.registries.in_process import Api, create, serving

TYPE = "schemagroups.schemas"
GROUP = "/schemagroups/g/schemas"
MANY = 60


class CountedRows:
    """A connection that counts the rows that it returns."""

    def __init__(self, db: Any) -> None:
        self._db = db
        self.rows = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def all(self, sql: str, values: Any = ()) -> list[Any]:
        found: list[Any] = self._db.all(sql, values)
        self.rows += len(found)
        return found


def write(api: Api, chance: random.Random) -> int:
    """Makes a random change of an xref, or of a Resource without one; returns the position afterwards."""
    id, target = chance.choice("abc"), chance.choice(["s1", "s2", "missing"])
    match chance.randrange(4):
        case 0 | 1:
            api.send("PUT", f"{GROUP}/{id}/meta", {"xref": f"{GROUP}/{target}"})
        case 2:
            api.send("DELETE", f"{GROUP}/{id}")
        case _:
            api.send("PUT", f"{GROUP}/{id}$details", {"format": "Avro/1.11.0", "schema": "int", "meta": {"xref": None}})
    return int(api.get("/-/log/head")["position"])


def test_past_xrefs_are_those_of_a_scan(store_url: str) -> None:
    # CSR-905, CSR-909
    create(store_url, default_source())
    with serving(store_url) as api:
        schemas = {f"s{number}": {"format": "Avro/1.11.0", "schema": "int"} for number in range(MANY)}
        api.done("POST", "/schemagroups", {"g": {"schemas": schemas}})
        chance, positions = random.Random(7), [int(api.get("/-/log/head")["position"])]
        positions += [write(api, chance) for _ in range(30)]
    with closing(Store(store_url)) as store, store.engine.connect() as connection:
        found_any = False
        for position in sorted(set(positions)):
            db = CountedRows(drivers.database_of(connection))
            view = PastView(db, position)
            found = sorted(view.xref_rows("/schemagroups", [TYPE]))
            assert db.rows <= 10, "Resources that never had an xref are not read"
            assert found == sorted(row for row in view.subtree("/schemagroups", [TYPE]) if xref_of(row) is not None)
            found_any |= bool(found)
        assert found_any
