"""`/-/check` over HTTP: whether a document could be the next Version, with nothing written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from annals.domain.model.builtin import default_source
from tests.support.registries.in_process import Api, create, serving

SCHEMA = "/schemagroups/g/schemas/s"
CHECK = f"/-/check{SCHEMA}"
READERS = {
    "reader": {"name": "rosa", "role": "reader"},
    "elsewhere": {"name": "ed", "groups": {"/schemagroups/h": "reader"}},
}


def record(*names: str) -> dict[str, Any]:
    """An Avro schema whose fields have no defaults."""
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": "string"} for name in names]}


@pytest.fixture
def schemas(sqlite_url: str) -> Iterator[Api]:
    """A schema of three Versions in one line: a, ab, a."""
    create(sqlite_url, default_source())
    with serving(sqlite_url) as api:
        for id, names in (("v1", "a"), ("v2", "ab"), ("v3", "a")):
            api.done("PUT", f"{SCHEMA}/versions/{id}$details", {"format": "Avro/1.11", "schema": record(*names)})
        yield api


def check_result(api: Api, query: str, *names: str) -> tuple[bool | None, list[str], list[tuple[str, str, str]]]:
    """Checks a schema: whether it is compatible, what it was compared with, and each incompatibility in short."""
    found = api.done("POST", CHECK + query, record(*names)).json()
    short = [(one["ancestor"]["versionid"], one["direction"], one["rule"]) for one in found["incompatibilities"]]
    return found["compatible"], found["against"], short


def test_a_check_answers_and_writes_nothing(schemas: Api) -> None:
    before = schemas.get("/-/log/head")
    found = schemas.done("POST", f"{CHECK}?compatibility=backward", record("a", "b")).json()
    incompatible = found.pop("incompatibilities")
    assert found == {
        "xid": SCHEMA,
        "format": "avro/1.11",
        "valid": True,
        "violations": [],
        "compatibility": "backward",
        "against": ["v3"],
        "compatible": False,
        "reason": None,
    }
    assert [(one["rule"], one["version"]["pointer"]) for one in incompatible] == [
        ("reader-field-missing-default", "/fields/1")
    ]
    assert schemas.get("/-/log/head") == before


@pytest.mark.parametrize(
    ("query", "names", "expected"),
    [
        ("", "ab", (None, [], [])),
        ("?compatibility=forward", "ab", (True, ["v3"], [])),
        ("?compatibility=backward_transitive", "a", (True, ["v3", "v2", "v1"], [])),
        ("?compatibility=FULL&against=all", "a", (False, ["v3", "v2", "v1"], [("v2", "forward", "")])),
        ("?compatibility=backward&against=latest", "a", (True, ["v3"], [])),
        ("?compatibility=forward&against=v2,%20v1", "a", (False, ["v2", "v1"], [("v2", "forward", "")])),
        ("?compatibility=backward&against=v2", "ab", (True, ["v2"], [])),
    ],
)
def test_it_is_held_against_one_all_or_chosen_versions(schemas: Api, query: str, names: str, expected: Any) -> None:
    # ENT-112: the compatibility determines the Versions to compare with, unless the request names them
    compatible, against, short = check_result(schemas, query, *names)
    rules = [(id, direction, "") for id, direction, _ in short]
    assert (compatible, against, rules) == expected


def test_the_rule_of_the_resource_is_the_default(schemas: Api) -> None:
    schemas.done("DELETE", f"{SCHEMA}/versions", {"v2": {}})
    schemas.done("PATCH", f"{SCHEMA}/meta", {"compatibility": "forward"})
    assert check_result(schemas, "", "b")[:2] == (False, ["v3"])


def test_the_next_version_descends_from_the_newest_whatever_the_default(schemas: Api) -> None:
    # ENT-107, ENT-112: a check and the following write have the same result
    schemas.done("DELETE", f"{SCHEMA}/versions", {"v2": {}})
    schemas.done(
        "PUT", f"{SCHEMA}/versions/v4$details", {"format": "Avro/1.11", "schema": record("a", "b"), "ancestorid": "v1"}
    )
    schemas.done("PATCH", f"{SCHEMA}/meta", {"compatibility": "forward", "defaultversionid": "v3"})
    assert check_result(schemas, "", "a") == (False, ["v4"], [("v4", "forward", "reader-field-missing-default")])
    refused = schemas.send("POST", f"{SCHEMA}$details", {"format": "Avro/1.11", "schema": record("a")})
    assert refused.json()["incompatibilities"][0]["ancestor"]["versionid"] == "v4"
    assert check_result(schemas, "?against=all", "a", "b")[:2] == (True, ["v4", "v1"])


def test_what_was_not_validated_is_compared_with_nothing(schemas: Api) -> None:
    # SC-34: as in a write, the compatibility is unknown, and the response says why
    schemas.done("PUT", f"{SCHEMA}/versions/v3$details", {"format": "Avro/1.11", "schemaurl": "http://127.0.0.1:1/s"})
    found = schemas.done("POST", f"{CHECK}?compatibility=backward_transitive", record("a", "b")).json()
    assert (found["valid"], found["compatible"], found["reason"]) == (True, None, '"v3" was not validated')
    assert (found["against"], found["incompatibilities"]) == (["v3", "v2", "v1"], [])


def test_a_rule_that_the_format_lacks_is_a_reason_and_no_mistake_of_who_asks(schemas: Api) -> None:
    # SC-31: the compatibility is the Resource's; a write of the Resource returns the same reason
    schemas.done("PATCH", "/capabilities", {"compatibilities": {"Avro*": ["backward"]}})
    other = "/schemagroups/g/schemas/other"
    tree = {"format": "JsonSchema/draft-07", "schema": {}, "meta": {"compatibility": "backward"}}
    reason = schemas.done("PUT", f"{other}$details", tree).json()["compatibilityvalidatedreason"]
    found = schemas.done("POST", f"/-/check{other}", {}).json()
    assert (found["valid"], found["compatible"], found["reason"]) == (True, None, reason)


def test_documents_of_two_formats_cannot_be_compared(schemas: Api) -> None:
    found = schemas.done(
        "POST", f"{CHECK}?format=JsonSchema/draft-07&compatibility=backward", {"type": "object"}
    ).json()
    assert (found["valid"], found["compatible"]) == (True, False)
    assert [one["text"] for one in found["incompatibilities"]] == [
        'documents of "jsonschema/draft-07" and of "avro/1.11" cannot be compared'
    ]


def test_an_invalid_document_reports_the_position(schemas: Api) -> None:
    # SC-10: violations have their place in the document; an invalid document is not compared
    found = schemas.done("POST", f"{CHECK}?compatibility=backward", record("a", "a")).json()
    assert (found["valid"], found["compatible"], found["incompatibilities"]) == (False, None, [])
    assert found["violations"][0]["pointer"] == "/fields/1"
    assert schemas.done("POST", CHECK, b"").json()["violations"] == [{"text": "the document is empty"}]


@pytest.mark.parametrize("xref", [None, "/schemagroups/g/schemas/none", "/schemagroups/g/schemas/pointer"])
def test_a_schema_that_is_not_there_yet_needs_a_format(schemas: Api, xref: str | None) -> None:
    # ENT-134: an xref to nothing, or to a Resource that has one too, shows nothing
    schemas.done("PUT", "/schemagroups/g/schemas/pointer/meta", {"xref": SCHEMA})
    if xref:
        schemas.done("PUT", "/schemagroups/new/schemas/t/meta", {"xref": xref})
    other = "/-/check/schemagroups/new/schemas/t"
    found = schemas.done("POST", f"{other}?format=Avro/1.11&compatibility=backward", record("a")).json()
    assert (found["valid"], found["against"]) == (True, [])
    assert schemas.send("POST", other, record("a")).status_code == 404
    of_pointer = schemas.done("POST", "/-/check/schemagroups/g/schemas/pointer?compatibility=backward", record("a"))
    assert of_pointer.json()["against"] == ["v3"]


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("POST", f"{CHECK}?format=Own/1", 400, "cannot be checked here"),
        ("POST", f"{CHECK}?compatibility=sideways", 400, "sideways"),
        ("POST", "/-/check/schemagroups/g/schemas/new?format=Avro/1.11&compatibility=sideways", 400, "sideways"),
        ("POST", f"{CHECK}?compatibility=backward&against=v9", 404, "v9"),
        ("POST", f"{CHECK}?versus=v1", 400, "versus"),
        ("POST", "/-/check/schemagroups/g", 404, "not a Resource"),
        ("POST", "/-/check/schemagroups/g/widgets/w", 404, "widgets"),
        ("GET", CHECK, 405, "GET"),
    ],
)
def test_what_cannot_be_asked_is_refused(schemas: Api, method: str, path: str, status: int, words: str) -> None:
    answer = schemas.send(method, path, record("a") if method == "POST" else None)
    assert (answer.status_code, words in answer.text) == (status, True), answer.text


def test_what_can_be_checked_is_what_is_switched_on(schemas: Api) -> None:
    # SC-15: the error names only formats that the capabilities include
    schemas.done("PATCH", "/capabilities", {"formats": ["Avro/*"], "compatibilities": {"Avro/*": ["backward"]}})
    answer = schemas.send("POST", f"{CHECK}?format=JsonSchema/draft-07", {"type": "object"})
    assert answer.status_code == 400
    detail = answer.json()["args"]["error_detail"]
    assert detail.endswith('"JsonSchema/draft-07" cannot be checked here; use one of: Avro/*')


def test_readers_may_check_documents(store_url: str) -> None:
    create(store_url, default_source())
    with serving(store_url, tokens=json.dumps(READERS)) as api:
        path = f"{CHECK}?format=Avro/1.11"
        assert api.send("POST", path, record("a"), authorization="Bearer reader").status_code == 200
        assert api.send("POST", path, record("a"), authorization="Bearer elsewhere").status_code == 404
        assert api.send("POST", path, record("a")).status_code == 401


def test_a_document_that_replaces_another(schemas: Api) -> None:
    # SC-32, SC-33: it is compared as in a write; a first Version is compared only with those that follow it
    assert check_result(schemas, "?compatibility=backward&version=v1", "a") == (
        False,
        ["v2"],
        [("v2", "backward", "reader-field-missing-default")],
    )
    assert check_result(schemas, "?compatibility=backward&version=v1", "a", "b") == (True, ["v2"], [])
    compatible, against, found = check_result(schemas, "?compatibility=full&version=v2", "a")
    assert (compatible, against, found) == (True, ["v1", "v3"], [])
    assert check_result(schemas, "?compatibility=forward_transitive&version=v1", "a", "b")[1] == ["v2", "v3"]
    for query, status in (("version=none", 404), ("version=v1&against=all", 400)):
        assert schemas.send("POST", f"{CHECK}?compatibility=full&{query}", record("a")).status_code == status
