"""Members that belong to another entity are refused and never dropped, because their data would be lost (ENT-17)."""

from __future__ import annotations

from typing import Any

import pytest

from annals.domain.decisions.commands import WriteMethod
from tests.domain.decisions.test_xrefs import refused
from tests.support.registries.memory import MemoryRegistry

FILE = "/dirs/d/files/f"
V1 = f"{FILE}/versions/v1"


@pytest.fixture(params=[{}, {"*": {"type": "any"}}], ids=["closed", "open"])
def registry(request: pytest.FixtureRequest) -> MemoryRegistry:
    """A registry with a file with one Version; its type allows no extensions, or any."""
    files = {"singular": "file", "hasdocument": False, "attributes": request.param}
    made = MemoryRegistry({"groups": {"dirs": {"singular": "dir", "resources": {"files": files}}}})
    made.put(V1, {})
    return made


@pytest.mark.parametrize("name", ["meta", "versions"])
@pytest.mark.parametrize("value", [{}, {"v1": {}}, "x"])
@pytest.mark.parametrize(
    ("method", "xid", "around"),
    [
        (WriteMethod.PUT, V1, None),
        (WriteMethod.PATCH, V1, None),
        (WriteMethod.PUT, f"{FILE}/versions/v2", None),
        (WriteMethod.POST, f"{FILE}/versions", "v1"),
        (WriteMethod.PATCH, f"{FILE}/versions", "v1"),
        (WriteMethod.PUT, FILE, "versions.v1"),
        (WriteMethod.POST, "/dirs/d/files", "f.versions.v1"),
        (WriteMethod.PATCH, "/dirs/d", "files.f.versions.v1"),
    ],
)
def test_a_version_has_no_nested_entities(
    registry: MemoryRegistry, method: WriteMethod, xid: str, around: str | None, name: str, value: Any
) -> None:
    # ENT-17, ENT-18: at any path to the Version, whether or not its type allows extensions
    tree: Any = {name: value}
    for step in reversed(around.split(".") if around else []):
        tree = {step: tree}
    problem = refused(registry, xid, tree, method)
    owner = xid if xid.count("/") == 6 else V1
    assert (problem.name, problem.subject, problem.arguments) == ("unknown_attribute", owner, {"name": name})


@pytest.mark.parametrize(
    ("xid", "tree", "name"),
    [
        (f"{FILE}/meta", {"versions": {}}, "versions"),
        (f"{FILE}/meta", {"meta": {}}, "meta"),
        ("/dirs/d", {"versions": {}}, "versions"),
        ("/dirs/d", {"meta": {}}, "meta"),
        ("/dirs/d", {"dirs": {}}, "dirs"),
        ("/", {"files": {}}, "files"),
    ],
)
def test_no_level_has_the_collections_of_another(
    registry: MemoryRegistry, xid: str, tree: dict[str, Any], name: str
) -> None:
    # ENT-17: not even an empty one is dropped
    problem = refused(registry, xid, tree)
    assert (problem.name, problem.subject, problem.arguments) == ("unknown_attribute", xid, {"name": name})


def test_what_a_copied_answer_has_is_dropped(registry: MemoryRegistry) -> None:
    # ENT-14, ENT-15, HTTP-24: URLs and counts anywhere, null, and `meta` and `versions` in a POST to a Resource
    navigation = {"metaurl": "u", "versionsurl": "u", "versionscount": 1}
    registry.put(V1, {**navigation, "meta": None, "versions": None, "name": "kept"})
    registry.post(FILE, {**navigation, "meta": {"labels": {"a": "b"}}, "versions": {"v9": {}}, "versionid": "v2"})
    assert list(registry.versions(FILE)) == ["v1", "v2"]
    assert "labels" not in registry.meta(FILE)
