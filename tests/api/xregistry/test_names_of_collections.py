"""Ids that are names of collections, such as a Resource `versions`, are ids like all others."""

from __future__ import annotations

from itertools import product

import pytest

from annals.domain.model.builtin import default_source
from tests.support.registries.in_process import create, serving

NAMES = ("versions", "meta", "schemas", "schemagroups")


@pytest.mark.parametrize(("group", "resource"), [*product(NAMES, NAMES)])
def test_names_of_collections_are_ids(sqlite_url: str, group: str, resource: str) -> None:
    # ENT-30: any id of its characters is one, for Groups, Resources and Versions
    create(sqlite_url, default_source())
    schema = f"/schemagroups/{group}/schemas/{resource}"
    body = {"format": "avro/1.11", "schema": {"type": "string"}}
    with serving(sqlite_url) as api:
        for version in NAMES:
            path = f"{schema}/versions/{version}"
            api.done("PUT", f"{path}$details", body)
            api.done("PATCH", f"{path}$details", {"name": "Name"})
            assert api.done("GET", f"{path}$details").json()["xid"] == path
        api.done("PATCH", f"{schema}/meta", {"labels": {"a": "b"}})
        api.done("PATCH", f"{schema}$details", {"description": "Default"})
        assert [*api.done("GET", f"{schema}/versions").json()] == sorted(NAMES)
        exported = api.done("GET", "/export").json()
        assert [*exported["schemagroups"][group]["schemas"][resource]["versions"]] == sorted(NAMES)
        api.done("DELETE", f"{schema}/versions/versions")
        api.done("DELETE", f"{schema}/versions", {name: {} for name in NAMES[1:3]})
        assert [*api.done("GET", f"{schema}/versions").json()] == ["schemagroups"]
        api.done("DELETE", f"{schema}/versions/schemagroups")
        assert api.send("GET", schema).status_code == 404
