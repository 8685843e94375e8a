"""Differences between two moments name subjects, versions and ids, over HTTP and on the console."""

from __future__ import annotations

from typing import Any

from annals.api.compat.confluent.paths import BASE
from annals.domain.model.builtin import default_source
from tests.support.console import Annals, annals, folder
from tests.support.registries.in_process import Api, create, serving

__all__ = ["annals", "folder"]

VERSIONS = "/schemagroups/default/schemas/{}/versions/{}"


def register(api: Api, subject: str, schema: str) -> None:
    api.done("POST", f"{BASE}/subjects/{subject}/versions?force=true", {"schema": schema})


def position(api: Api) -> int:
    return int(api.get("/-/log/head")["position"])


def write_history(api: Api) -> tuple[int, int]:
    """Writes through three APIs. Returns the positions before and after the changes to compare."""
    for subject in ("kept", "changed", "my%20subject"):
        register(api, subject, '"int"')
    start = position(api)
    register(api, "kept", '"long"')
    register(api, ":.lab:new", '"int"')
    api.done("PUT", "/schemagroups/default/schemas/changed", b'"string"', content_type="application/json")
    api.done("DELETE", f"{BASE}/subjects/my%20subject")
    return start, position(api)


def schema(subject: str, version: int, id: int) -> dict[str, Any]:
    return {"subject": subject, "version": version, "id": id}


def test_differences_name_subjects_versions_and_ids(annals: Annals, store_url: str) -> None:
    # CSR-905, CSR-901, FLAG-80
    create(store_url, default_source())
    with serving(store_url) as api:
        start, end = write_history(api)
        entities = api.get(f"/-/diff/?from={start}&to={end}")["entities"]
        backwards = api.get(f"/-/diff/?from={end}&to={start}")["entities"]
        settings = api.get(f"/-/diff/schemagroups/default/schemas/kept?from={end}")["entities"]
    deleted = "/schemagroups/default/schemas/_~my~20subject/versions/1"
    shown = {one["xid"]: (one["change"], one["schema"]) for one in entities if "schema" in one}
    assert shown == {
        VERSIONS.format("changed", 1): (
            "changed",
            {"before": schema("changed", 1, 1), "after": schema("changed", 1, 3)},
        ),
        VERSIONS.format("kept", 1): ("changed", {"before": schema("kept", 1, 1), "after": schema("kept", 1, 1)}),
        VERSIONS.format("kept", 2): ("created", {"after": schema("kept", 2, 2)}),
        deleted: ("deleted", {"before": schema("my subject", 1, 1)}),
        "/schemagroups/lab/schemas/new/versions/1": ("created", {"after": schema("new", 1, 1)}),
    }
    turned = {"before": "after", "after": "before"}
    assert {one["xid"]: one["schema"] for one in backwards if "schema" in one} == {
        xid: {turned[name]: value for name, value in members.items()} for xid, (_, members) in shown.items()
    }
    assert settings == []
    printed = annals("log", "diff", "--from", str(start), "--to", str(end), "--database", store_url).out
    rows = [line.split("\t") for line in printed.splitlines()]
    assert [row[1:] for row in rows if row[2].startswith("(schema")] == [
        [deleted, "(schema id)", "1", ""],
        [deleted, "(schema subject)", '"my subject"', ""],
        [deleted, "(schema version)", "1", ""],
        [VERSIONS.format("changed", 1), "(schema id)", "1", "3"],
        [VERSIONS.format("kept", 2), "(schema id)", "", "2"],
        [VERSIONS.format("kept", 2), "(schema subject)", "", '"kept"'],
        [VERSIONS.format("kept", 2), "(schema version)", "", "2"],
        ["/schemagroups/lab/schemas/new/versions/1", "(schema id)", "", "1"],
        ["/schemagroups/lab/schemas/new/versions/1", "(schema subject)", "", '"new"'],
        ["/schemagroups/lab/schemas/new/versions/1", "(schema version)", "", "1"],
    ]
