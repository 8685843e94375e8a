"""A request that changes a model or capabilities together with entities, and a restore that does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import pytest

from annals.api.registry.definitions import DefinitionsCache, RegistryDefinitions
from annals.commands.command_bus import CommandBus
from annals.commands.store.log import Store
from annals.domain.decisions.commands import ReplaceModel
from annals.projections.entities.apply import EntityProjection
from annals.projections.entities.view import View
from tests.support.registries.in_process import Api, create, serving

ANY: dict[str, Any] = {"*": {"type": "any"}}
F = "/dirs/d/files/f"


def _model(attributes: Mapping[str, Any], group_attributes: Mapping[str, Any] = ANY, **file: Any) -> dict[str, Any]:
    files = {"singular": "file", "validateformat": True, "attributes": dict(attributes), **file}
    resources = {"files": files}
    return {"groups": {"dirs": {"singular": "dir", "attributes": dict(group_attributes), "resources": resources}}}


@pytest.fixture
def api(store_url: str) -> Iterator[Api]:
    create(store_url, _model(ANY))
    with serving(store_url) as served:
        yield served


def _error(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["type"].rpartition("#")[2]


#: Models that the stored Version does not comply with, and the error that says so.
REFUSED = [
    (_model({"x": {"type": "integer"}}), "model_compliance_error"),
    (_model({**ANY, "y": {"type": "string", "required": True}}), "model_compliance_error"),
    (_model(ANY, hasdocument=False), "hasdocument_violation"),
]


@pytest.mark.parametrize(("model", "expected"), REFUSED)
def test_a_model_with_capabilities_is_checked_against_data(api: Api, model: Any, expected: str) -> None:
    # MOD-93, MOD-94: a request that also enables formats, so that documents are checked again, is refused as well
    api.done("PATCH", "/capabilities", {"formats": [], "compatibilities": None})
    api.done("PUT", f"{F}$details", {"format": "avro/1.11", "file": {"type": "string"}, "x": "text"})
    assert _error(api.send("PATCH", "/", {"modelsource": model})) == (400, expected)
    assert _error(api.send("PATCH", "/", {"capabilities": {"formats": ["*"]}, "modelsource": model})) == (400, expected)
    api.done("PATCH", f"{F}$details", {})


def test_a_model_with_capabilities_prunes_and_fills_in(api: Api) -> None:
    # ENT-105, MOD-12, ENT-68
    api.done("PATCH", "/capabilities", {"formats": [], "compatibilities": None})
    for version in ("1", "2", "3"):
        api.done("PUT", f"{F}/versions/{version}$details", {"format": "avro/1.11", "file": {"type": "string"}})
    required = {"type": "string", "required": True, "default": "filled"}
    model = _model({**ANY, "y": required}, maxversions=1)
    api.done("PATCH", "/", {"capabilities": {"formats": ["*"]}, "modelsource": model})
    assert [*api.done("GET", f"{F}/versions").json()] == ["3"]
    assert api.done("GET", f"{F}$details").json()["y"] == "filled"


def test_an_attribute_with_the_name_of_a_document(api: Api) -> None:
    # MOD-4: a type without documents may have an attribute like its singular, whatever the type was before
    api.done("PATCH", "/capabilities", {"formats": [], "compatibilities": None})
    tree = {"d": {"files": {"g": {"format": "avro/1.11", "file": {"a": 1}}}}}
    api.done("PATCH", "/", {"modelsource": _model(ANY, hasdocument=False), "dirs": tree})
    assert api.done("GET", "/dirs/d/files/g").json()["file"] == {"a": 1}
    api.done("PUT", "/dirs/d/files/h", {"format": "avro/1.11", "file": [1]})
    assert api.done("GET", "/dirs/d/files/h").json()["file"] == [1]


def test_a_restored_model_has_the_attributes_of_groups(api: Api) -> None:
    # MOD-93: what is in the way of a restored model is deleted first; the restored Group is one of that model
    api.done("PUT", "/modelsource", _model(ANY, {"x": {"type": "string"}}))
    moment = api.done("PUT", "/dirs/d", {"x": "1"}).headers["annals-position"]
    api.done("PATCH", "/dirs/d", {"x": None})
    larger = _model(ANY, {})
    larger["groups"]["dirs"]["resources"]["extras"] = {"singular": "extra"}
    api.done("PUT", "/modelsource", larger)
    api.done("PUT", "/dirs/d/extras/e", {})
    api.done("POST", f"/-/restore/?asof={moment}&include=model")
    assert api.done("GET", "/dirs/d").json()["x"] == "1"


def test_readonly_siblings_end_with_their_value(store_url: str) -> None:
    # MOD-20: a replacement keeps read-only values, but not those of siblings that it does not enable
    branches = {
        value: {"siblingattributes": {name: {"type": "string", "readonly": True, "required": True, "default": "x"}}}
        for value, name in (("a", "av"), ("b", "bv"))
    }
    attributes = {"kind": {"type": "string", "ifvalues": branches}}
    create(store_url, _model(attributes))
    with serving(store_url) as api:
        for kind, expected in (("a", {"av": "x"}), ("b", {"bv": "x"}), (None, {})):
            api.done("PUT", f"{F}$details", {"kind": kind} if kind else {})
            found = api.done("GET", f"{F}$details").json()
            assert {name: found[name] for name in ("av", "bv") if name in found} == expected
        api.done("PUT", f"{F}$details", {"kind": "a"})
        api.done("PUT", "/modelsource", _model({**attributes, **ANY}))
        api.done("PUT", f"{F}$details", {"kind": "b"})
        assert "av" not in api.done("GET", f"{F}$details").json()


def test_ignored_members_of_a_meta(api: Api) -> None:
    # ENT-52, ENT-91: `ignore` is for a meta wherever it is, of a new Resource and of one that gets an xref too
    api.done("PUT", "/dirs/d/files/t$details", {})
    bodies: tuple[tuple[str, dict[str, Any]], ...] = (
        ("n1$details", {"meta": {"defaultversionid": "dd"}}),
        ("n2/meta", {"defaultversionid": "dd"}),
    )
    for path, body in bodies:
        api.done("PUT", f"/dirs/d/files/{path}?ignore=defaultversionid", body)
    assert [*api.done("GET", "/dirs/d/files/n1/versions").json()] == ["1"]
    assert [*api.done("GET", "/dirs/d/files/n2/versions").json()] == ["1"]
    body = {"name": "top", "versions": {"v1": {}, "v2": {}}, "meta": {"defaultversionid": "dd"}}
    api.done("PUT", "/dirs/d/files/n3$details?ignore=defaultversionid", body)
    assert [*api.done("GET", "/dirs/d/files/n3/versions").json()] == ["v1", "v2"]
    pointer = {"xref": "/dirs/d/files/t", "epoch": 99}
    assert _error(api.send("PATCH", "/dirs/d/files/n1/meta", pointer)) == (400, "mismatched_epoch")
    api.done("PATCH", "/dirs/d/files/n1/meta?ignore=epoch", pointer)
    api.done("PUT", "/dirs/d/files/n2$details?ignore=epoch", {"meta": pointer})


def test_the_default_version_after_a_cycle_is_pruned(store_url: str) -> None:
    # ENT-80: the newest Version, among those that are left
    create(store_url, _model(ANY, maxversions=3, versionmode="manual"))
    with serving(store_url) as api:
        a, b, c = ({"createdat": f"{year}-01-01T00:00:00Z"} for year in (2021, 2026, 2020))
        versions = {"a": a, "b": {**b, "ancestorid": "a"}, "c": {**c, "ancestorid": "b"}}
        api.done("POST", f"{F}/versions", versions)
        d = {"createdat": "2030-01-01T00:00:00Z", "ancestorid": "b"}
        api.done("POST", f"{F}/versions", {"a": {"ancestorid": "d"}, "d": d})
        assert api.done("GET", f"{F}/meta").json()["defaultversionid"] == "d"


def test_ids_of_a_restored_lifetime_are_not_given_again(api: Api) -> None:
    # ENT-75: no id is assigned twice, also if the Resource was created again before it is restored
    for _ in range(5):
        moment = api.done("POST", f"{F}$details", {}).headers["annals-position"]
    moment = api.done("DELETE", f"{F}/versions", {id: {} for id in "345"}).headers["annals-position"]
    api.done("DELETE", F)
    api.done("PUT", f"{F}$details", {})
    api.done("POST", f"/-/restore{F}?asof={moment}")
    assert api.done("POST", f"{F}$details", {}).json()["versionid"] == "6"


def test_a_write_while_another_process_changes_the_model(
    api: Api, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # V-14: a request is parsed and answered under the model of its moment, however often the model has changed before
    models = [_model(ANY, {**ANY, name: {"type": "integer", "default": 5, "required": True}}) for name in "abc"]
    read_current = DefinitionsCache.current
    with closing(Store(store_url)) as store, closing(CommandBus(store, [EntityProjection()])) as command_bus:

        def read_before_a_change(self: DefinitionsCache, view: View) -> RegistryDefinitions:
            definitions = read_current(self, view)
            if models:
                command_bus.submit(ReplaceModel(models.pop())).result()
            return definitions

        command_bus.submit(ReplaceModel(models.pop())).result()
        monkeypatch.setattr(DefinitionsCache, "current", read_before_a_change)
        answer = api.done("PUT", "/dirs/d", {"name": "n"})
    assert answer.json() == api.get("/dirs/d")
    assert not models
