"""Callers of some contexts: what they cannot see does not exist for them, and they cannot use up what all need."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from annals.api.compat.confluent.paths import BASE
from annals.domain.model.builtin import default_source
from tests.support.registries.in_process import Api, create, serving

TOKENS: Final = json.dumps(
    {
        "root": {"name": "root", "role": "admin"},
        "lea": {"name": "lea", "groups": {"/schemagroups/lab": "writer"}},
        "rob": {"name": "rob", "groups": {"/schemagroups/lab": "reader"}},
    }
)
HIDDEN: Final = '{"type":"object","required":["secret"],"properties":{"secret":{"enum":["x"]}}}'
SHOWN: Final = '{"type":"object","properties":{"p":{"type":"object","properties":{}}}}'
BASE_REFERENCE: Final = {"name": "b", "subject": ":.other:base", "version": 1}
INT, LONG, STRING = ({"schema": f'"{name}"'} for name in ("int", "long", "string"))


@pytest.fixture
def api(store_url: str) -> Iterator[Api]:
    create(store_url, default_source())
    with serving(store_url, tokens=TOKENS) as served:
        yield served


def ask(api: Api, method: str, path: str, body: Any = None, by: str = "root") -> tuple[int, Any]:
    """The status and the body of the response."""
    answer = api.send(method, BASE + path, body, authorization=f"Bearer {by}")
    return answer.status_code, answer.json()


@pytest.mark.parametrize("by", ["rob", "lea"])
@pytest.mark.parametrize(
    "path",
    [
        "/compatibility/subjects/:.lab:shown/versions/latest?verbose=true",
        "/compatibility/subjects/:.lab:shown/versions?verbose=true",
        "/subjects/:.lab:shown",
    ],
)
def test_a_hidden_reference_is_none(api: Api, path: str, by: str) -> None:
    # CSR-508, ACC-76: as for registering, a reference to what the caller cannot see leads nowhere
    json_schema = {"schemaType": "JSON"}
    assert ask(api, "POST", "/subjects/:.other:hidden/versions", {**json_schema, "schema": HIDDEN})[0] == 200
    assert ask(api, "POST", "/subjects/:.lab:shown/versions", {**json_schema, "schema": SHOWN})[0] == 200
    schema = SHOWN.replace('{"type":"object","properties":{}}', '{"$ref":"h"}')

    def answer_about(subject: str) -> str:
        references = [{"name": "h", "subject": f":.other:{subject}", "version": 1}]
        answer = ask(api, "POST", path, {**json_schema, "schema": schema, "references": references}, by)
        return json.dumps(answer).replace(subject, "it")

    assert answer_about("hidden") == answer_about("absent")
    assert "No schema reference found" in answer_about("hidden")


@pytest.mark.parametrize("by", ["root", "rob", "lea"])
def test_an_xref_shows_a_hidden_target(api: Api, by: str) -> None:
    # ACC-81, CSR-909: reading follows an xref, as in every other API
    for path, body in ((":.other:base", INT), (":.other:hidden", {**STRING, "references": [BASE_REFERENCE]})):
        assert ask(api, "POST", f"/subjects/{path}/versions", body)[0] == 200
    api.done("PUT", "/schemagroups/lab", {}, authorization="Bearer root")
    xref = {"xref": "/schemagroups/other/schemas/hidden"}
    api.done("PUT", "/schemagroups/lab/schemas/view/meta", xref, authorization="Bearer root")
    shown = ask(api, "GET", "/subjects/:.lab:view/versions/1", by=by)[1]
    assert (shown["subject"], shown["schema"], shown["id"]) == (":.lab:view", '"string"', 2)
    assert shown["references"] == [{"name": "b", "subject": ":.other:base", "version": 1}]
    assert ask(api, "GET", "/subjects?subjectPrefix=:.lab:", by=by) == (200, [":.lab:view"])
    assert ask(api, "GET", "/schemas/ids/2?subject=:.lab:view", by=by)[1]["schema"] == '"string"'
    assert ask(api, "GET", f"/schemas/guids/{shown['guid']}", by=by)[1]["schema"] == '"string"'


def test_an_xref_shows_nothing_that_a_hidden_target_had(api: Api) -> None:
    # ACC-81, CSR-909: its soft-deleted versions stay hidden, as in the other APIs
    for body in (STRING, LONG):
        assert ask(api, "POST", "/subjects/:.other:hidden/versions?force=true", body)[0] == 200
    assert ask(api, "DELETE", "/subjects/:.other:hidden/versions/2")[0] == 200
    api.done("PUT", "/schemagroups/lab", {}, authorization="Bearer root")
    xref = {"xref": "/schemagroups/other/schemas/hidden"}
    api.done("PUT", "/schemagroups/lab/schemas/view/meta", xref, authorization="Bearer root")
    assert ask(api, "GET", "/subjects/:.lab:view/versions?deleted=true") == (200, [1, 2])
    assert ask(api, "GET", "/subjects/:.lab:view/versions?deleted=true", by="rob") == (200, [1])
    assert ask(api, "GET", "/schemas/ids/2", by="rob")[0] == 404


def test_an_xref_to_a_hidden_context_with_another_id(api: Api) -> None:
    # ACC-81, CSR-306: references of its target are followed there as well
    api.done("PUT", "/schemagroups/ab", {}, authorization="Bearer root")
    base = {"schema": '{"type":"record","name":"Base","fields":[]}'}
    assert ask(api, "POST", "/subjects/:.AB:base/versions", base)[0] == 200
    user = '{"type":"record","name":"User","fields":[{"name":"b","type":"Base"}]}'
    references = [{"name": "Base", "subject": "base", "version": 1}]
    assert ask(api, "POST", "/subjects/:.AB:user/versions", {"schema": user, "references": references})[0] == 200
    api.done("PUT", "/schemagroups/lab", {}, authorization="Bearer root")
    groups = api.done("GET", "/schemagroups", authorization="Bearer root").json()
    (id,) = (id for id in groups if id.startswith("_~"))
    xref = {"xref": f"/schemagroups/{id}/schemas/user"}
    api.done("PUT", "/schemagroups/lab/schemas/view/meta", xref, authorization="Bearer root")
    shown = [ask(api, "GET", "/subjects/:.lab:view/versions/1?format=resolved", by=by) for by in ("root", "rob")]
    assert shown[0] == shown[1] and shown[0][0] == 200


def test_ids_are_not_used_up_by_one_context(api: Api) -> None:
    # CSR-409: the counter follows imports, so only an administrator of all may import ids near its end
    for name in (":.lab:a", "own"):
        assert ask(api, "PUT", f"/mode/{name}", {"mode": "IMPORT"})[0] == 200
    high = {**INT, "id": 2**31 - 2, "version": 1}
    status, answer = ask(api, "POST", "/subjects/:.lab:a/versions", high, "lea")
    assert (status, answer["error_code"]) == (422, 42205) and "1073741824" in answer["message"]
    body = {"source": "s", "subjects": [{"subject": ":.lab:a", "versions": [{**high, "number": 1}], "live": [1]}]}
    assert "1073741824" in json.dumps(ask(api, "POST", "/-/import", body, "lea")[1])
    assert ask(api, "POST", "/subjects/:.lab:a/versions", {**INT, "id": 2**30, "version": 1}, "lea")[0] == 200
    assert ask(api, "POST", "/subjects/own/versions", {**LONG, "id": 2**31 - 2, "version": 1})[0] == 200


def test_an_id_is_not_given_to_other_content(api: Api) -> None:
    # CSR-407, CSR-408: a content gets a new id where its id of another context is taken
    assert ask(api, "POST", "/subjects/own/versions", INT)[1]["id"] == 1
    assert ask(api, "PUT", "/mode/:.lab:a", {"mode": "IMPORT"}, "lea")[0] == 200
    assert ask(api, "POST", "/subjects/:.lab:a/versions", {**LONG, "id": 1, "version": 1}, "lea")[0] == 200
    assert ask(api, "POST", "/subjects/other/versions", LONG)[1]["id"] == 2
    assert ask(api, "POST", "/subjects/third/versions", LONG)[1]["id"] == 2
    assert ask(api, "POST", "/subjects/:.lab:b/versions", LONG)[1]["id"] == 1
    assert ask(api, "GET", "/schemas/ids/1")[1]["schema"] == '"int"'
    assert ask(api, "GET", "/schemas/ids/2")[1]["schema"] == '"long"'
