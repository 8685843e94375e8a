"""Published documents pass through the whole registry: they are checked, registered, changed and refused.

SC-10, SC-13, SC-30, SC-36, V-14. The table is documents.yaml; document_changes.py changes the documents.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml

from annals.domain.model.builtin import default_source
from tests.spec.published import document_sources
from tests.spec.published.document_changes import Change, broken, changes
from tests.support.registries.in_process import Api, serving
from tests.support.stores import schema_of

pytestmark = pytest.mark.long

Json = dict[str, Any]
TABLE: Final[list[Json]] = yaml.load((Path(__file__).parent / "documents.yaml").read_text(), yaml.CSafeLoader)
_WAYS: Final = ("backward", "forward")


class Published(NamedTuple):
    """One row for one document. refused: a word of the reason why it is none of its format, if it is none."""

    format: str
    carrier: str
    package: tuple[str, ...]
    path: str
    refused: str | None

    def brought(self) -> bytes:
        document: bytes = getattr(document_sources, self.carrier)(*self.package, self.path)
        return document


def rows(refused: bool) -> Iterator[Any]:
    """The documents of the table that are refused, or those that are not."""
    for row in TABLE:
        files = row.get("refused", {}) if refused else dict.fromkeys(row.get("files", []))
        for file, why in files.items():
            path = row.get("under", "") + file
            made = Published(row["format"], row["carrier"], tuple(row["package"]), path, why)
            yield pytest.param(made, id=f"{row['package'][0]}/{path}")


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def registry(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A registry for all documents, whose schemas are validated strictly: what cannot be checked is refused."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            url = f"sqlite:///{tmp_path_factory.mktemp('published') / 'annals.db'}"
        else:
            url = stack.enter_context(schema_of(request.getfixturevalue("postgres_server")))
        api = stack.enter_context(serving(url))
        model = default_source()
        model["groups"]["schemagroups"]["resources"]["schemas"]["strictvalidation"] = True
        api.done("PUT", "/modelsource", model)
        yield api


class CheckedSchema:
    """One schema of a registry, whose Versions have one format."""

    def __init__(self, api: Api, xid: str, format: str) -> None:
        self.api = api
        self.xid = xid
        self.format = format

    def check(self, document: bytes, **parameters: str) -> Json:
        """The answer to a check, which writes nothing."""
        query = "&".join(f"{name}={value}" for name, value in {"format": self.format, **parameters}.items())
        before = self.api.get("/-/log/head")
        answer: Json = self.api.done("POST", f"/-/check{self.xid}?{query}", document).json()
        assert self.api.get("/-/log/head") == before
        return answer

    def write(self, method: str, path: str, document: bytes, **headers: str) -> Any:
        """The answer to a write of the bytes of a document, as a Version."""
        return self.api.send(method, self.xid + path, document, xRegistry_format=self.format, **headers)

    def check_refusal(self, answer: Any, problem: str, before: Json) -> Json:
        """The body of a refusal that has changed nothing. before: the head of the log."""
        assert answer.status_code == 400, answer.text
        body: Json = answer.json()
        assert body["type"].rpartition("#")[2] == problem
        assert self.api.get("/-/log/head") == before
        return body


@pytest.mark.parametrize("published", list(rows(refused=False)))
def test_a_published_document(registry: Api, published: Published) -> None:
    document = published.brought()
    schema = CheckedSchema(registry, _place(published), published.format)
    _registered(schema, document)
    registry.done("PATCH", f"{schema.xid}/meta", {"compatibility": "backward"})
    assert registry.get(f"{schema.xid}$details")["compatibilityvalidated"] is True
    made = changes(published.format, document)
    taken = {_evolved(schema, change): change for change in made}
    _turned(schema, {id: change for id, change in taken.items() if id})


@pytest.mark.parametrize("published", list(rows(refused=True)))
def test_a_published_document_that_is_none(registry: Api, published: Published) -> None:
    # SC-10, V-14: what its project publishes as a schema, and what is not one for a reason that is told
    assert published.refused is not None
    found = _not_registered(CheckedSchema(registry, _place(published), published.format), published.brought())
    assert published.refused in found[0]["text"], found


def _place(published: Published) -> str:
    group = published.format.partition("/")[0].lower()
    words = [*published.package, published.path]
    name = "".join(letter if letter.isalnum() else "-" for letter in "-".join(words))
    return f"/schemagroups/{group}/schemas/{name.strip('-')}"


def _registered(schema: CheckedSchema, document: bytes) -> None:
    """SC-10, SC-13: it is what it says, its second half missing it is not; the registry keeps it byte for byte."""
    _not_registered(schema, broken(schema.format, document))
    assert schema.check(document) == _valid(schema)
    assert schema.write("PUT", "", document).status_code == 201
    assert schema.api.send("GET", schema.xid).content == document
    shown = schema.api.get(f"{schema.xid}$details")
    told = {name: value for name, value in shown.items() if "validated" in name or name in ("format", "versionid")}
    assert told == {"format": schema.format, "versionid": "1", "formatvalidated": True}


def _not_registered(schema: CheckedSchema, document: bytes) -> list[Json]:
    """Why a document is none of its format, which a check tells as the refusal does (V-14)."""
    found = schema.check(document)
    violations: list[Json] = found["violations"]
    assert violations and all(one["text"] for one in violations)
    assert all("pointer" in one or "line" in one for one in violations), violations
    assert found == _valid(schema) | {"valid": False, "violations": violations}
    before = schema.api.get("/-/log/head")
    refused = schema.check_refusal(schema.write("PUT", "", document), "format_violation", before)
    assert refused["violations"] == [{"versionid": "1", **one} for one in violations]
    assert schema.api.send("GET", f"{schema.xid}$details").status_code == 404
    return violations


def _evolved(schema: CheckedSchema, change: Change) -> str | None:
    """SC-36: a check says which readers can live with a change, and a write under `backward` agrees with it.

    The id of the Version, if it is taken.
    """
    told = {way: _compared(schema, change, way) for way in _WAYS}
    before = schema.api.get("/-/log/head")
    versions = schema.api.get(f"{schema.xid}/versions")
    answer = schema.write("POST", "", change.document, xRegistry_ancestorid="1")
    if "B" in change.allowed:
        assert answer.status_code == 201, answer.text
        id = answer.headers["xregistry-versionid"]
        shown = schema.api.get(f"{schema.xid}/versions/{id}$details")
        assert (shown["formatvalidated"], shown["compatibilityvalidated"]) == (True, True)
        return str(id)
    body = schema.check_refusal(answer, "compatibility_violation", before)
    assert _unnamed(body["incompatibilities"]) == told["backward"], change.what
    assert schema.api.get(f"{schema.xid}/versions") == versions
    return None


def _compared(schema: CheckedSchema, change: Change, way: str) -> list[Json]:
    """The incompatibilities that a check finds: none where the change is allowed, else its rule, with both places."""
    body = schema.check(change.document, compatibility=way, against="1")
    found: list[Json] = body["incompatibilities"]
    allowed = way[0].upper() in change.allowed
    compared = {"compatibility": way, "against": ["1"], "compatible": allowed, "incompatibilities": found}
    assert body == _valid(schema) | compared, (change.what, way)
    assert bool(found) is not allowed, (change.what, way)
    if found:
        assert change.rules[_WAYS.index(way)] in {one["rule"] for one in found}, (change.what, way, found)
    for one in found:
        assert one["direction"] == way and one["text"]
        sides = one["version"], one["ancestor"]
        assert any("pointer" in side or "line" in side for side in sides), one
        assert all(side.get("fragment") for side in sides if "pointer" in side or "line" in side), one
    return found


def _turned(schema: CheckedSchema, taken: dict[str, Change]) -> None:
    """SC-30: a rule that is asked for later holds for all Versions that are there, or is refused and names them."""
    before = schema.api.get("/-/log/head")
    answer = schema.api.send("PATCH", f"{schema.xid}/meta", {"compatibility": "forward"})
    against = {id for id, change in taken.items() if "F" not in change.allowed}
    if not against:
        assert answer.status_code == 200, answer.text
        return
    body = schema.check_refusal(answer, "compatibility_violation", before)
    assert {one["version"]["versionid"] for one in body["incompatibilities"]} == against
    assert schema.api.get(f"{schema.xid}/meta")["compatibility"] == "backward"


def _valid(schema: CheckedSchema) -> Json:
    """The answer to a check of a document that is one, and that is compared with nothing."""
    return {
        "xid": schema.xid,
        "format": schema.format.lower(),
        "valid": True,
        "violations": [],
        "compatibility": None,
        "against": [],
        "compatible": None,
        "reason": None,
        "incompatibilities": [],
    }


def _unnamed(incompatibilities: list[Json]) -> list[Json]:
    """Without the id of the Version, which a check has none for."""
    return [
        {**one, "version": {name: value for name, value in one["version"].items() if name != "versionid"}}
        for one in incompatibilities
    ]
