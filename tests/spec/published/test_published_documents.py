"""Published documents are checked, registered, changed and refused, through the API of a registry.

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
_DIRECTIONS: Final = ("backward", "forward")


class Published(NamedTuple):
    """A document of a row. refused: a part of the reason why it is invalid; None for a valid document."""

    format: str
    carrier: str
    package: tuple[str, ...]
    path: str
    refused: str | None

    def read(self) -> bytes:
        document: bytes = getattr(document_sources, self.carrier)(*self.package, self.path)
        return document


def rows(refused: bool) -> Iterator[Any]:
    """The invalid documents of the table, or the valid ones."""
    for row in TABLE:
        files = row.get("refused", {}) if refused else dict.fromkeys(row.get("files", []))
        for file, why in files.items():
            path = row.get("under", "") + file
            published = Published(row["format"], row["carrier"], tuple(row["package"]), path, why)
            yield pytest.param(published, id=f"{row['package'][0]}/{path}")


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def registry(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A registry for all documents, with strict validation: documents that cannot be checked are refused."""
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
    """A schema of a registry whose Versions all have the same format."""

    def __init__(self, api: Api, xid: str, format: str) -> None:
        self.api = api
        self.xid = xid
        self.format = format

    def check(self, document: bytes, **parameters: str) -> Json:
        """The response to a check. Asserts that the check writes nothing."""
        query = "&".join(f"{name}={value}" for name, value in {"format": self.format, **parameters}.items())
        before = self.api.get("/-/log/head")
        answer: Json = self.api.done("POST", f"/-/check{self.xid}?{query}", document).json()
        assert self.api.get("/-/log/head") == before
        return answer

    def write(self, method: str, path: str, document: bytes, **headers: str) -> Any:
        """The response to a write of a document as a Version."""
        return self.api.send(method, self.xid + path, document, xRegistry_format=self.format, **headers)

    def check_refusal(self, answer: Any, problem: str, before: Json) -> Json:
        """The body of a refusal. Asserts that nothing has changed. before: the head of the log before the request."""
        assert answer.status_code == 400, answer.text
        body: Json = answer.json()
        assert body["type"].rpartition("#")[2] == problem
        assert self.api.get("/-/log/head") == before
        return body


@pytest.mark.parametrize("published", list(rows(refused=False)))
def test_a_published_document(registry: Api, published: Published) -> None:
    document = published.read()
    schema = CheckedSchema(registry, _place(published), published.format)
    _check_registration(schema, document)
    registry.done("PATCH", f"{schema.xid}/meta", {"compatibility": "backward"})
    assert registry.get(f"{schema.xid}$details")["compatibilityvalidated"] is True
    all_changes = changes(published.format, document)
    taken = {_check_change(schema, change): change for change in all_changes}
    _check_forward(schema, {id: change for id, change in taken.items() if id})


@pytest.mark.parametrize("published", list(rows(refused=True)))
def test_a_published_document_that_is_none(registry: Api, published: Published) -> None:
    # SC-10, V-14: a published document that is invalid is refused, with the reason
    assert published.refused is not None
    found = _check_invalid(CheckedSchema(registry, _place(published), published.format), published.read())
    assert published.refused in found[0]["text"], found


def _place(published: Published) -> str:
    group = published.format.partition("/")[0].lower()
    words = [*published.package, published.path]
    name = "".join(letter if letter.isalnum() else "-" for letter in "-".join(words))
    return f"/schemagroups/{group}/schemas/{name.strip('-')}"


def _check_registration(schema: CheckedSchema, document: bytes) -> None:
    """SC-10, SC-13: the document is valid and stored unchanged; a broken form of it is refused."""
    _check_invalid(schema, broken(schema.format, document))
    assert schema.check(document) == _valid(schema)
    assert schema.write("PUT", "", document).status_code == 201
    assert schema.api.send("GET", schema.xid).content == document
    stored = schema.api.get(f"{schema.xid}$details")
    details = {name: value for name, value in stored.items() if "validated" in name or name in ("format", "versionid")}
    assert details == {"format": schema.format, "versionid": "1", "formatvalidated": True}


def _check_invalid(schema: CheckedSchema, document: bytes) -> list[Json]:
    """The violations in an invalid document. A check and a refusal return the same ones (V-14)."""
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


def _check_change(schema: CheckedSchema, change: Change) -> str | None:
    """SC-36: a write with `backward` has the same result as a check of the compatibility.

    Returns the id of the new Version, or None if the write is refused.
    """
    found_by_check = {direction: _compared(schema, change, direction) for direction in _DIRECTIONS}
    before = schema.api.get("/-/log/head")
    versions = schema.api.get(f"{schema.xid}/versions")
    answer = schema.write("POST", "", change.document, xRegistry_ancestorid="1")
    if "B" in change.allowed:
        assert answer.status_code == 201, answer.text
        id = answer.headers["xregistry-versionid"]
        stored = schema.api.get(f"{schema.xid}/versions/{id}$details")
        assert (stored["formatvalidated"], stored["compatibilityvalidated"]) == (True, True)
        return str(id)
    body = schema.check_refusal(answer, "compatibility_violation", before)
    assert _without_version_ids(body["incompatibilities"]) == found_by_check["backward"], change.what
    assert schema.api.get(f"{schema.xid}/versions") == versions
    return None


def _compared(schema: CheckedSchema, change: Change, direction: str) -> list[Json]:
    """The incompatibilities that a check finds: none if the change is allowed, else its rule, with places in both."""
    body = schema.check(change.document, compatibility=direction, against="1")
    found: list[Json] = body["incompatibilities"]
    allowed = direction[0].upper() in change.allowed
    compared = {"compatibility": direction, "against": ["1"], "compatible": allowed, "incompatibilities": found}
    assert body == _valid(schema) | compared, (change.what, direction)
    assert bool(found) is not allowed, (change.what, direction)
    if found:
        assert change.rules[_DIRECTIONS.index(direction)] in {one["rule"] for one in found}, (
            change.what,
            direction,
            found,
        )
    for one in found:
        assert one["direction"] == direction and one["text"]
        sides = one["version"], one["ancestor"]
        assert any("pointer" in side or "line" in side for side in sides), one
        assert all(side.get("fragment") for side in sides if "pointer" in side or "line" in side), one
    return found


def _check_forward(schema: CheckedSchema, taken: dict[str, Change]) -> None:
    """SC-30: a new compatibility has to hold for all existing Versions; a refusal names those that break it."""
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
    """The response to a check of a valid document, without a comparison."""
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


def _without_version_ids(incompatibilities: list[Json]) -> list[Json]:
    """The incompatibilities without the id of the new Version, which a check does not have."""
    return [
        {**one, "version": {name: value for name, value in one["version"].items() if name != "versionid"}}
        for one in incompatibilities
    ]
