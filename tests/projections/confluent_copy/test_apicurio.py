"""Copies from and to Apicurio, whose answers differ from those of Confluent's registry (CSR-1002, CSR-1008).

Here a registry in this process answers as Apicurio 3.0 does; `tests/api/cli/confluent_copies` has the real one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from annals.domain.confluent.subjects import Subject
from annals.projections.confluent_copy.export_run import IdsNotKept
from annals.projections.confluent_copy.rest_api import RestAnswer, RestError
from annals.projections.confluent_copy.rest_reader import RestReader
from tests.projections.confluent_copy.served_registry import (
    ServedRegistry,
    export_lines,
    import_lines,
    served_registry,
)

NOT_THERE: Final = RestAnswer(404, None)
NO_CONTENT: Final = RestAnswer(204, None)
PROTOBUF: Final = 'syntax = "proto3";\nmessage M {\n  string a = 1;\n}\n'


class Apicurio(ServedRegistry):
    """Keeps white space, which look-ups compare. It has neither guids nor modes nor a list of all schemas.

    hidden: the subject whose versions cannot be read, although they are listed, as it is soft-deleted.
    """

    hidden = "gone"

    def send(self, method: str, path: str, body: Any = None) -> RestAnswer:
        place = path.partition("?")[0]
        if place.startswith("/mode/"):
            return NO_CONTENT
        is_lookup = method == "POST" and not place.endswith("/versions")
        if (
            (is_lookup and body.get("schemaType") != "PROTOBUF")
            or place in ("/mode", "/schemas")
            or place.startswith(f"/subjects/{self.hidden}/versions/")
        ):
            return NOT_THERE
        answer = super().send(method, path, body)
        if place == "/contexts":
            return RestAnswer(200, [":.:"])
        if method == "GET" and place.startswith("/config/") and answer.status == 404:
            return RestAnswer(200, {"compatibilityLevel": "NONE"})
        return RestAnswer(answer.status, _as_sent(answer.body)) if method == "GET" and "/versions/" in place else answer


def _as_sent(version: dict[str, Any]) -> dict[str, Any]:
    """A version without a guid, and with white space in its text."""
    text = version["schema"]
    if version.get("schemaType") != "PROTOBUF":
        text = json.dumps(json.loads(text), indent=2)
    return {name: value for name, value in {**version, "schema": text}.items() if name != "guid"}


@pytest.fixture
def apicurio(tmp_path: Path) -> Iterator[Apicurio]:
    with served_registry(tmp_path, "apicurio") as registry:
        for subject, body in (
            ("avro", {"schema": '{"type": "record", "name": "R", "fields": []}'}),
            ("avro", {"schema": '{"type": "record", "name": "R", "fields": [], "doc": "d"}'}),
            ("json", {"schema": '{"title": "base", "const": 1}', "schemaType": "JSON"}),
            ("protobuf", {"schema": PROTOBUF, "schemaType": "PROTOBUF"}),
        ):
            registry.done("POST", f"/subjects/{subject}/versions", body)
        registry.done("DELETE", "/subjects/avro/versions/1")
        registry.done("PUT", "/config", {"compatibility": "FULL"})
        registry.done("PUT", "/config/json", {"compatibility": "FORWARD"})
        yield Apicurio(registry.api)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[ServedRegistry]:
    with served_registry(tmp_path, "own") as registry:
        yield registry


def test_levels_that_subjects_inherit_stay_unset(apicurio: Apicurio, own: ServedRegistry) -> None:
    # CSR-1002: each subject without a level of its own has NONE in the answers
    import_lines(RestReader(apicurio), own)
    reader = RestReader(own)
    configs = [reader.read(Subject(".", name)).config for name in ("", "avro", "json", "protobuf")]
    assert configs == [{"compatibilityLevel": "FULL"}, {}, {"compatibilityLevel": "FORWARD"}, {}]


@pytest.mark.parametrize("new_ids", [False, True])
def test_an_unchanged_copy_is_equal_at_its_source(apicurio: Apicurio, own: ServedRegistry, new_ids: bool) -> None:
    # CSR-1005, CSR-1008: it has the texts in another form
    assert [line["outcome"] for line in import_lines(RestReader(apicurio), own)] == ["created"] * 4
    assert [line["outcome"] for line in export_lines(own, apicurio, new_ids=new_ids)] == ["equal"] * 4


@pytest.mark.parametrize(
    ("text", "outcome"),
    [('{"const": 1, "title": "base"}', "equal"), ('{"title": "base", "const": true}', "conflict"), ("{", "conflict")],
)
def test_a_version_that_has_another_text_there(
    apicurio: Apicurio, own: ServedRegistry, monkeypatch: pytest.MonkeyPatch, text: str, outcome: str
) -> None:
    # CSR-1004: `true` is not 1, and the order of members does not matter
    import_lines(RestReader(apicurio), own)
    send = apicurio.send

    def sent(method: str, path: str, body: Any = None) -> RestAnswer:
        answer = send(method, path, body)
        is_version = path.startswith("/subjects/json/versions/")
        return RestAnswer(200, {**answer.body, "schema": text}) if is_version else answer

    monkeypatch.setattr(apicurio, "send", sent)
    assert {line["outcome"] for line in export_lines(own, apicurio) if line["subject"] == "json"} == {outcome}


@pytest.mark.parametrize("is_deleted_meanwhile", [False, True])
def test_versions_that_are_listed_and_cannot_be_read_are_reported(
    apicurio: Apicurio, monkeypatch: pytest.MonkeyPatch, is_deleted_meanwhile: bool
) -> None:
    # CSR-1006: a soft-deleted subject
    apicurio.done("POST", "/subjects/gone/versions", {"schema": '"int"'})
    apicurio.done("DELETE", "/subjects/gone")
    gone, send, lists = Subject(".", "gone"), apicurio.send, list[RestAnswer]()

    def sent(method: str, path: str, body: Any = None) -> RestAnswer:
        if path.startswith("/subjects/gone/versions?"):
            lists.append(send(method, path, body))
            return RestAnswer(200, []) if is_deleted_meanwhile and len(lists) > 1 else lists[-1]
        return send(method, path, body)

    monkeypatch.setattr(apicurio, "send", sent)
    outcome = dict(RestReader(apicurio).read_all([gone, Subject(".", "avro")]))[gone]
    if is_deleted_meanwhile:
        assert not isinstance(outcome, RestError) and outcome.is_empty
    else:
        assert str(outcome) == "GET /subjects/gone/versions/1: it is in the list of versions, and cannot be read"


@pytest.mark.parametrize("put", [NO_CONTENT, RestAnswer(200, {"mode": "IMPORT"})])
@pytest.mark.parametrize("shown", [NO_CONTENT, NOT_THERE, RestAnswer(200, {"mode": "READWRITE"})])
def test_a_registry_that_does_not_take_the_mode_is_refused(
    apicurio: Apicurio, own: ServedRegistry, monkeypatch: pytest.MonkeyPatch, put: RestAnswer, shown: RestAnswer
) -> None:
    # CSR-1008: nothing is registered there, because it would have other ids
    import_lines(RestReader(apicurio), own)
    own.done("POST", "/subjects/new/versions", {"schema": '"int"'})
    send = apicurio.send

    def sent(method: str, path: str, body: Any = None) -> RestAnswer:
        if path.startswith("/mode/"):
            return put if method == "PUT" else shown
        return send(method, path, body)

    monkeypatch.setattr(apicurio, "send", sent)
    with pytest.raises(IdsNotKept, match="it has no mode IMPORT"):
        export_lines(own, apicurio)
    assert apicurio.changes == []


@pytest.mark.parametrize("is_shown", [False, True])
def test_a_mode_that_is_shown_late(
    apicurio: Apicurio, own: ServedRegistry, monkeypatch: pytest.MonkeyPatch, is_shown: bool
) -> None:
    # CSR-1008: of several nodes, one may lag behind; whatever it shows, the mode does not stay
    import_lines(RestReader(apicurio), own)
    own.done("POST", "/subjects/new/versions", {"schema": '"int"'})
    send, modes, looks = apicurio.send, list[str](), list[str]()

    def sent(method: str, path: str, body: Any = None) -> RestAnswer:
        if not path.startswith("/mode/new"):
            return send(method, path, body)
        if method != "GET":
            modes.append(method)
            return RestAnswer(200, {"mode": "IMPORT"})
        looks.append(path)
        return RestAnswer(200, {"mode": "IMPORT"}) if is_shown and "PUT" in modes and len(looks) > 3 else NOT_THERE

    monkeypatch.setattr(apicurio, "send", sent)
    if is_shown:
        export_lines(own, apicurio)
        assert len(apicurio.changes) == 1
    else:
        with pytest.raises(IdsNotKept, match="it has no mode IMPORT"):
            export_lines(own, apicurio)
        assert apicurio.changes == []
    assert modes == ["PUT", "DELETE"]
