"""Writes through Confluent's API are visible in the other APIs and vice versa: now, in the past, after a rebuild."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from contextlib import closing
from threading import Event
from typing import Any

import pytest

from annals.api.compat.confluent.paths import BASE
from annals.api.compat.confluent.reading import ConfluentRead
from annals.api.compat.confluent.writing import ConfluentWrite, ConfluentWriter, Prepare, Prepared
from annals.api.http.response import Response
from annals.commands.store.log import Store
from annals.commands.verify.verify_log import verify_log, verify_row_hashes
from annals.domain.access.roles import CONSOLE
from annals.domain.model.builtin import default_source
from annals.projections.entities import schema_versions
from annals.projections.entities.rebuild import rebuild
from annals.projections.entities.verify.verify_history import verify_history
from tests.support.registries.in_process import Api, create, serving

FORMAT = "Avro/1.11.0"
GROUP = "/schemagroups/default/schemas"
RECORD = '{"type":"record","name":"R","fields":[]}'
USER = '{"type":"record","name":"User","fields":[{"name":"r","type":"R"}]}'
RESOLVED_USER = USER.replace('"R"', RECORD)
WRAPPED = '{"type":"record","name":"Wrapped","fields":[{"name":"user","type":"User"}]}'


@pytest.fixture
def api(store_url: str) -> Iterator[Api]:
    create(store_url, default_source())
    with serving(store_url) as served:
        yield served


def write(api: Api, path: str, schema: Any, **headers: str) -> None:
    api.done("PUT", f"{GROUP}/{path}$details", {"format": FORMAT, "schema": schema}, **headers)


def found(api: Api, path: str) -> Any:
    return api.send("GET", BASE + path).json()


def test_schemas_of_the_registry_have_ids(api: Api) -> None:
    # CSR-404, CSR-406, CSR-901
    write(api, "a", "int")
    write(api, "a/versions/7", "string")
    write(api, "a/versions/x", "long")
    write(api, "b", "int")
    assert found(api, "/subjects/a/versions") == [1, 7, 8]
    assert [found(api, f"/subjects/a/versions/{number}")["id"] for number in (1, 7, 8)] == [1, 2, 3]
    assert found(api, "/subjects/b/versions/1")["id"] == 1
    assert found(api, "/schemas/ids/2/schema") == "string"


def test_only_schemas_that_parse_are_shown(api: Api) -> None:
    # CSR-405
    api.done("PUT", f"{GROUP}/own$details", {"format": "own", "schema": {"type": "int"}})
    assert found(api, "/subjects") == []
    assert found(api, "/subjects/own/versions")["error_code"] == 40401


def test_what_is_registered_is_an_ordinary_resource(api: Api) -> None:
    # CSR-307, CSR-403, CSR-418, CSR-419, CSR-713, CSR-810
    api.done("POST", f"{BASE}/subjects/a/versions", {"schema": '"int"'})
    api.done("PUT", f"{BASE}/config/a", {"compatibility": "BACKWARD"})
    shown = api.get(f"{GROUP}/a$details?inline=meta")
    assert (shown["versionid"], shown["format"], shown["contenttype"]) == ("1", FORMAT, "application/json")
    assert shown["meta"]["compatibility"] == "backward"
    assert api.send("GET", f"{GROUP}/a").text == '"int"'
    api.done("POST", f"{BASE}/subjects/a/versions?force=true", {"schema": '"string"'})
    second = api.get(f"{GROUP}/a/versions/2$details")
    assert (second["compatibilityvalidated"], second["ancestorid"]) == (False, "1")
    api.done("PATCH", f"{GROUP}/a/meta", {"compatibility": None})
    assert found(api, "/config/a")["error_code"] == 40408


def test_a_text_that_is_accepted_here_only(api: Api) -> None:
    # CSR-418, CSR-810: the format says an older release, by whose rules the document is not valid
    text = '{"type":"record","name":"U","fields":[{"name":"x","type":["null","string"],"default":"q"}]}'
    api.done("POST", f"{BASE}/subjects/u/versions", {"schema": text})
    for _ in range(2):
        version = api.done("GET", f"{GROUP}/u/versions/1$details").json()
        assert (version["format"], version["formatvalidated"]) == (FORMAT, False)
        assert "the first of its union" in version["formatvalidatedreason"]
        api.done("PATCH", f"{GROUP}/u/versions/1$details", {"description": "d"})
    assert found(api, "/schemas/ids/1")["schema"] == text


def test_other_apis_delete_softly_and_restore(api: Api) -> None:
    # CSR-606, CSR-607, CSR-608
    api.done("POST", f"{BASE}/subjects/a/versions", {"schema": '"int"'})
    position = int(api.send("GET", "/-/log/head").json()["position"])
    api.done("DELETE", f"{GROUP}/a")
    assert found(api, "/subjects") == []
    assert found(api, "/subjects?deleted=true") == ["a"]
    assert api.send("GET", f"{BASE}/schemas/ids/1/schema").text == '"int"'
    api.done("POST", f"/-/restore{GROUP}/a?asof={position}")
    assert found(api, "/subjects/a/versions?deleted=true") == [1]
    assert found(api, "/subjects/a/versions/1")["id"] == 1


def test_a_changed_document_has_a_new_id_and_the_old_one_resolves(api: Api) -> None:
    # CSR-412
    write(api, "a", "int")
    write(api, "a", "string")
    assert found(api, "/subjects/a/versions/1")["id"] == 2
    assert api.send("GET", f"{BASE}/schemas/ids/1/schema").text == '"int"'
    assert found(api, "/schemas/ids/1/versions") == []


def test_a_version_created_again_is_a_new_one(api: Api) -> None:
    # CSR-608
    write(api, "a", "int")
    api.done("DELETE", f"{GROUP}/a")
    write(api, "a", "string")
    assert found(api, "/subjects/a/versions?deleted=true") == [1, 2]
    assert found(api, "/subjects/a/versions") == [2]
    api.done("DELETE", f"{BASE}/subjects/a/versions/1?permanent=true")
    assert found(api, "/subjects/a/versions?deleted=true") == [2]


def test_versions_of_one_stream_are_deleted_with_their_numbers(api: Api) -> None:
    # CSR-602, CSR-608
    for schema in ("int", "string"):
        write(api, "a", schema)
        api.done("DELETE", f"{GROUP}/a")
    write(api, "a", "long")
    assert found(api, "/subjects/a/versions?deleted=true") == [1, 2, 3]
    assert api.send("DELETE", f"{BASE}/subjects/a/versions/1?permanent=true").json() == 1
    assert api.send("DELETE", f"{BASE}/subjects/a").json() == [3]
    assert api.send("DELETE", f"{BASE}/subjects/a?permanent=true").json() == [2, 3]
    assert found(api, "/subjects?deleted=true") == []


def test_readonly_resources_refuse_writes(store_url: str) -> None:
    # CSR-517, CSR-711: `recursive` clears no mode of one either
    create(store_url, default_source())
    with serving(store_url, ports={"caller": CONSOLE}) as api:
        api.done("POST", f"{BASE}/subjects/a/versions", {"schema": '"int"'})
        api.done("PUT", f"{BASE}/mode/a", {"mode": "READONLY"})
        api.done("PATCH", f"{GROUP}/a/meta", {"readonly": True})
        for path in ("/mode/a", "/mode?recursive=true"):
            assert api.send("DELETE", BASE + path).json()["error_code"] == 42205
        refused = api.send("POST", f"{BASE}/subjects/a/versions", {"schema": '"string"'}).json()
        assert refused["error_code"] == 42205
        assert found(api, "/mode/a") == {"mode": "READONLY"}


READS = ("/subjects?deleted=true", "/schemas?deleted=true", "/contexts", "/config", "/schemas/ids/1", "/schemas/ids/2")


def random_write(chance: random.Random) -> tuple[str, str, Any]:
    """A write through Confluent's API or the xRegistry API, to few names, so that most change an existing subject."""
    subject, number = chance.choice("abc"), chance.randint(1, 3)
    schema = chance.choice(['"int"', '"string"', '{"type":"record","name":"R","fields":[]}', '"long"'])
    return chance.choice(
        [
            ("POST", f"{BASE}/subjects/{subject}/versions?force=true", {"schema": schema}),
            ("POST", f"{BASE}/subjects/{subject}/versions", {"schema": schema, "metadata": {"properties": {"n": "1"}}}),
            ("POST", f"{BASE}/subjects/:.lab:{subject}/versions", {"schema": schema}),
            ("DELETE", f"{BASE}/subjects/{subject}", None),
            ("DELETE", f"{BASE}/subjects/{subject}?permanent=true", None),
            ("DELETE", f"{BASE}/subjects/{subject}/versions/{number}", None),
            ("DELETE", f"{BASE}/subjects/{subject}/versions/{number}?permanent=true", None),
            ("PUT", f"{BASE}/config/{subject}", {"compatibility": chance.choice(["NONE", "FULL", "BACKWARD"])}),
            ("PUT", f"{BASE}/mode/{subject}", {"mode": chance.choice(["READWRITE", "READONLY"])}),
            ("PUT", f"{GROUP}/{subject}$details", {"format": FORMAT, "schema": json.loads(schema)}),
            ("PUT", f"{GROUP}/{subject}/versions/{number}$details", {"format": FORMAT, "schema": json.loads(schema)}),
            ("DELETE", f"{GROUP}/{subject}/versions/{number}", None),
            ("DELETE", f"{GROUP}/{subject}", None),
        ]
    )


@pytest.mark.parametrize("seed", range(3))
def test_histories_answer_the_same_in_the_past_and_after_a_rebuild(store_url: str, seed: int) -> None:
    # CSR-902, CSR-905, CSR-408, CSR-409
    create(store_url, default_source())
    chance, answers = random.Random(seed), dict[int, list[Any]]()
    with serving(store_url) as api:
        for _ in range(40):
            method, path, body = random_write(chance)
            answer = api.send(method, path, body)
            assert answer.status_code < 500, f"{method} {path} {body}: {answer.text}"
            position = int(api.send("GET", "/-/log/head").json()["position"])
            answers[position] = [found(api, read) for read in READS]
            contents: dict[int, set[str]] = {}
            for one in found(api, "/schemas?deleted=true"):
                contents.setdefault(one["id"], set()).add(json.dumps([one["schema"], one.get("metadata")]))
            assert all(len(texts) == 1 for texts in contents.values()), "an id names one content"
        for position, given in answers.items():
            assert given == [found(api, f"{read}{'&' if '?' in read else '?'}asof={position}") for read in READS], (
                f"as of {position}"
            )
        last = [found(api, read) for read in READS]
    with closing(Store(store_url)) as store:
        assert [*verify_log(store), *verify_row_hashes(store), *verify_history(store)] == []
        rebuild(store)
        assert [*verify_history(store)] == []
    with serving(store_url, ids="later") as api:
        assert [found(api, read) for read in READS] == last


@pytest.mark.parametrize("moment", ["0", "1970-01-01T00:00:00Z"])
def test_before_the_first_interaction_there_is_nothing(api: Api, moment: str) -> None:
    # FLAG-80: the moment before a registry's creation has no time of its own
    write(api, "a", "int")
    answer = api.send("GET", f"{BASE}/subjects?asof={moment}")
    assert (answer.status_code, answer.json(), "memento-datetime" in answer.headers) == (200, [], False)
    assert api.send("GET", f"/-/subjects?asof={moment}").json()["count"] == 0
    assert api.send("GET", f"/ui/confluent?asof={moment}").status_code == 200


def test_asof_and_dryrun_are_for_one_kind_of_request(api: Api) -> None:
    # CSR-905, CSR-906
    for method, path, body in (("GET", "/subjects?dryrun", None), ("PUT", "/config?asof=1", {"compatibility": "NONE"})):
        refused = api.send(method, BASE + path, body)
        assert (refused.status_code, refused.json()["error_code"]) == (400, 400)
    assert api.send("GET", f"{BASE}/subjects?asof=never").json()["error_code"] == 400
    tried = api.send("POST", f"{BASE}/subjects/s/versions?dryrun", {"schema": '"int"'})
    assert tried.status_code == 200 and '"confluent"' in tried.text
    assert found(api, "/subjects") == []
    assert api.done("POST", f"{BASE}/subjects/t/versions", {"schema": '"string"'}).json()["id"] == 1


def test_exports_have_no_ids(api: Api) -> None:
    # CSR-903
    api.done("POST", f"{BASE}/subjects/s/versions", {"schema": '"int"'})
    exported = api.send("GET", "/export").text
    assert "confluent" not in exported and "guid" not in exported


def test_settings_are_kept_in_the_entities_that_they_are_of(api: Api) -> None:
    # CSR-712
    for path in ("/config", "/config/:.lab:", "/config/later", "/config/s"):
        api.done("POST", f"{BASE}/subjects/s/versions", {"schema": '"int"'})
        api.done("PUT", BASE + path, {"compatibility": "NONE"})
    lines = [json.loads(line) for line in api.send("GET", "/-/log", accept="application/x-ndjson").text.splitlines()]
    facts = {
        event["xid"]: event["private"]["confluent"]
        for line in lines
        for event in line.get("events", [line])
        if "confluent" in event.get("private", {})
    }
    assert facts["/"] == {"contexts": {".": {"config": {"compatibilityLevel": "NONE"}}}}
    assert facts["/schemagroups/lab"] == {"config": {"compatibilityLevel": "NONE"}}
    assert facts["/schemagroups/default"] == {"subjects": {"later": {"config": {"compatibilityLevel": "NONE"}}}}
    assert facts[f"{GROUP}/s"]["config"] == {"compatibilityLevel": "NONE"}


def settings_of(api: Api, subject: str) -> tuple[Any, Any]:
    """The own level and mode of a subject; None if it has none."""
    config, mode = found(api, f"/config/{subject}"), found(api, f"/mode/{subject}")
    return config.get("compatibilityLevel"), mode.get("mode")


def test_settings_come_with_a_resource_and_stay_without_it(api: Api) -> None:
    # CSR-712: whichever API creates and deletes the Resource
    api.done("PUT", f"{BASE}/config/s", {"normalize": True})
    api.done("PUT", f"{BASE}/mode/s", {"mode": "READONLY"})
    write(api, "s", "int")
    assert (found(api, "/config/s")["normalize"], settings_of(api, "s")[1]) == (True, "READONLY")
    assert api.send("POST", f"{BASE}/subjects/s/versions", {"schema": '"long"'}).status_code == 422
    for path in ("/mode/s", "/config/s"):
        api.done("DELETE", BASE + path)
    api.done("DELETE", f"{GROUP}/s")
    assert settings_of(api, "s") == (None, None), "what the Group knew is outdated"
    api.done("PUT", f"{BASE}/mode/s", {"mode": "READONLY"})
    write(api, "s", "int")
    api.done("DELETE", f"{GROUP}/s")
    write(api, "s", "int")
    assert settings_of(api, "s") == (None, "READONLY")


@pytest.mark.parametrize("level", [None, "forward"])
def test_the_level_of_a_new_resource_is_that_of_the_request(api: Api, level: str | None) -> None:
    # CSR-713: also if it has none; CSR-712: a level before does not come back
    api.done("PUT", f"{BASE}/config/s", {"compatibility": "FULL", "normalize": True})
    assert api.send("PUT", f"{GROUP}/s$details", {"format": FORMAT, "schema": {"type": "unknown"}}).status_code == 400
    assert settings_of(api, "s") == ("FULL", None)
    meta = {"meta": {"compatibility": level}} if level else {}
    for _ in range(2):
        api.done("PUT", f"{GROUP}/s$details", {"format": FORMAT, "schema": "int", **meta})
        wanted = (level or "backward").upper()  # the default, as there are other settings
        assert (settings_of(api, "s"), found(api, "/config/s")["normalize"]) == ((wanted, None), True)
        assert api.send("GET", f"{GROUP}/s/meta").json().get("compatibility") == level
        api.done("DELETE", f"{GROUP}/s")
        assert settings_of(api, "s") == (wanted, None)
        api.done("PUT", f"{BASE}/config/s", {"compatibility": "FULL"})


def test_a_restored_resource_has_the_settings_of_the_past(api: Api) -> None:
    # CSR-712, FLAG-80
    api.done("POST", f"{BASE}/subjects/s/versions", {"schema": '"int"'})
    api.done("PUT", f"{BASE}/config/s", {"compatibility": "FORWARD"})
    before = int(api.send("GET", "/-/log/head").json()["position"])
    api.done("DELETE", f"{GROUP}/s")
    api.done("PUT", f"{BASE}/mode/s", {"mode": "READONLY"})
    api.done("POST", f"/-/restore{GROUP}/s?asof={before}")
    assert settings_of(api, "s") == ("FORWARD", None)
    api.done("DELETE", f"{GROUP}/s")
    assert settings_of(api, "s") == ("FORWARD", None)


def test_settings_of_the_group_stay_while_an_xref_comes_and_goes(api: Api) -> None:
    # CSR-712, CSR-909: a Resource with an xref has none of its own
    api.done("POST", f"{BASE}/subjects/t/versions", {"schema": '"int"'})
    api.done("PUT", f"{BASE}/config/s", {"compatibility": "FULL"})
    api.done("PUT", f"{BASE}/mode/s", {"mode": "READONLY"})
    api.done("PUT", f"{GROUP}/s/meta", {"xref": f"{GROUP}/t"})
    api.done("DELETE", f"{GROUP}/s")
    assert settings_of(api, "s") == ("FULL", "READONLY")
    api.done("PUT", f"{GROUP}/s/meta", {"xref": f"{GROUP}/t"})
    api.done("PUT", f"{GROUP}/s$details", {"format": FORMAT, "schema": "int", "meta": {"xref": None}})
    assert settings_of(api, "s") == (None, "READONLY")


@pytest.mark.parametrize("path", ["", "/schemagroups/default"])
@pytest.mark.parametrize("level", [None, "FULL"])
@pytest.mark.parametrize("after", ["nothing", "changed", "cleared", "xref"])
def test_a_restore_without_the_resource_brings_its_settings_back(
    sqlite_url: str, path: str, level: str | None, after: str
) -> None:
    # CSR-712, FLAG-80: the Group has those of the past, whatever the Resource had that the restore deletes
    create(sqlite_url, default_source())
    with serving(sqlite_url) as api:
        api.done("PUT", "/schemagroups/default", {})
        if level:
            api.done("PUT", f"{BASE}/config/s", {"compatibility": level})
        before = int(api.send("GET", "/-/log/head").json()["position"])
        if after == "xref":
            api.done("PUT", f"{GROUP}/s/meta", {"xref": f"{GROUP}/t"})
        else:
            write(api, "s", "int")
            api.done("PUT", f"{BASE}/config/s", {"compatibility": "NONE" if after == "changed" else "BACKWARD"})
        if after == "cleared":
            api.done("DELETE", f"{BASE}/config/s")
        api.done("POST", f"/-/restore{path}?asof={before}")
        assert settings_of(api, "s") == (level, None)


@pytest.mark.parametrize("path", ["subjects/s", "subjects/s/versions/latest"])
def test_a_deletion_names_what_it_deletes(store_url: str, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    # CSR-602, CSR-404: also where another API has added a Version after the request was read
    create(store_url, default_source())
    with serving(store_url) as api:
        api.done("POST", f"{BASE}/subjects/s/versions", {"schema": '"string"'})
        answer = ConfluentWriter.answer
        is_read, is_written = Event(), Event()

        async def answer_late(self: ConfluentWriter, request: ConfluentWrite, prepare: Prepare, show: Any) -> Response:
            def prepare_and_wait(read: ConfluentRead) -> Prepared | Response:
                prepared = prepare(read)
                is_read.set()
                assert is_written.wait(60)
                return prepared

            return await answer(self, request, prepare_and_wait, show)

        async def delete_while_writing() -> Any:
            deletion = asyncio.create_task(api.client.delete(f"{BASE}/{path}"))
            assert await asyncio.to_thread(is_read.wait, 60)
            version = {"format": FORMAT, "schema": "int"}
            written = await api.client.put(f"{GROUP}/s/versions/v1$details", json=version)
            assert written.status_code == 201
            is_written.set()
            return (await deletion).json()

        monkeypatch.setattr(ConfluentWriter, "answer", answer_late)
        assert api.runner.run(delete_while_writing()) == ([1, 2] if path == "subjects/s" else 2)


def test_a_context_with_other_resources_is_not_empty(store_url: str) -> None:
    # CSR-314
    source = default_source()
    source["groups"]["schemagroups"]["resources"]["tables"] = {"singular": "table"}
    create(store_url, source)
    with serving(store_url) as api:
        api.done("PUT", "/schemagroups/lab/tables/t", {"a": 1})
        refused = api.send("DELETE", f"{BASE}/contexts/.lab")
        assert (refused.status_code, refused.json()["error_code"]) == (422, 42211)
        api.done("DELETE", "/schemagroups/lab/tables/t")
        api.done("DELETE", f"{BASE}/contexts/.lab")
        assert found(api, "/contexts") == ["."]


@pytest.mark.parametrize("schema", ['"long"', '{"type": "object"}'], ids=["AVRO", "JSON"])
def test_an_alias_of_a_subject_with_another_id(api: Api, schema: str) -> None:
    # CSR-312, CSR-309
    for name in ("Orders", "orders"):
        api.done("POST", f"{BASE}/subjects/{name}/versions", {"schema": '"int"'})
    api.done("PUT", f"{BASE}/config/orders", {"alias": "target"})
    body = {"schema": schema, "schemaType": "AVRO" if schema == '"long"' else "JSON"}
    api.done("POST", f"{BASE}/subjects/orders/versions", body)
    assert found(api, "/subjects/target/versions") == [1]


@pytest.mark.parametrize("id", ["a:b", "_~:foo", "_~~41", "_~a~3Ab", "A:b"])
def test_a_group_whose_id_is_no_name_of_a_context(api: Api, id: str) -> None:
    # CSR-306, CSR-309, CSR-302: its context has an escaped name, under which all of it is found
    api.done("PUT", f"/schemagroups/{id}/schemas/s$details", {"format": FORMAT, "schema": "int"})
    context = found(api, "/contexts")[-1]
    (name,) = found(api, "/subjects")
    assert name == f":{context}:s" and context != "."
    api.done("POST", f"{BASE}/subjects/{name}/versions", {"schema": '"long"'})
    assert found(api, f"/contexts/{context}/subjects/s/versions") == [1, 2]
    assert api.send("GET", f"/schemagroups/{id}").json()["schemascount"] == 1
    api.done("DELETE", f"{BASE}/subjects/{name}")
    assert found(api, "/subjects") == []


def test_unknown_members_are_ignored_and_flags_have_any_case(api: Api) -> None:
    # CSR-108, CSR-109, CSR-110
    for number in range(3):
        name = f"s{number}"
        api.done("POST", f"{BASE}/subjects/{name}/versions?own=1", {"schema": '"int"', "own": {"a": 1}})
    api.done("DELETE", f"{BASE}/subjects/s0")
    assert found(api, "/subjects?deleted=True") == found(api, "/subjects?deleted=TRUE") == ["s0", "s1", "s2"]
    assert found(api, "/subjects?deleted=False") == found(api, "/subjects?deleted=1") == ["s1", "s2"]
    assert len(found(api, "/schemas")) == 2


def test_a_check_that_takes_too_long_changes_nothing(store_url: str) -> None:
    # CSR-811
    create(store_url, default_source())
    text = 'syntax = "proto3"; ' + " ".join(f"message M{n} {{ int32 a = 1; }}" for n in range(20_000))
    with serving(store_url, check_seconds=0.05) as api:
        refused = api.send("POST", f"{BASE}/subjects/s/versions", {"schema": text, "schemaType": "PROTOBUF"})
        assert (refused.status_code, refused.json()["error_code"]) == (500, 50002)
        assert found(api, "/subjects?deleted=true") == []


def test_a_resource_with_an_xref_shows_the_versions_of_its_target(api: Api) -> None:
    # CSR-909
    api.done("POST", f"{BASE}/subjects/:.lab:base/versions", {"schema": RECORD})
    for text in (USER, '"long"'):
        references = [{"name": "R", "subject": "base", "version": 1}] if text == USER else []
        body = {"schema": text, "references": references}
        api.done("POST", f"{BASE}/subjects/:.lab:target/versions?force=true", body)
    before = int(api.send("GET", "/-/log/head").json()["position"])
    api.done("PUT", f"{GROUP}/shown/meta", {"xref": "/schemagroups/lab/schemas/target"})
    assert found(api, "/subjects") == [":.lab:base", ":.lab:target", "shown"]
    assert found(api, "/subjects/shown/versions") == [1, 2]
    shown, own = found(api, "/subjects/shown/versions/1"), found(api, "/subjects/:.lab:target/versions/1")
    assert shown["references"] == [{"name": "R", "subject": ":.lab:base", "version": 1}]
    assert {**shown, "subject": 0, "references": 0} == {**own, "subject": 0, "references": 0}
    assert found(api, "/subjects/shown/versions/1?format=resolved")["schema"] == RESOLVED_USER
    assert found(api, "/schemas/ids/3?subject=shown")["subject"] == "shown"
    assert found(api, "/contexts/:.:/schemas/ids/3/versions") == [{"subject": "shown", "version": 2}]
    listed = [(one["subject"], one["version"], one["id"]) for one in found(api, "/schemas")]
    assert listed == [("shown", 1, 2), ("shown", 2, 3)]
    assert api.send("POST", f"{BASE}/subjects/shown", {"schema": '"long"'}).json()["version"] == 2
    using = {"schema": WRAPPED, "references": [{"name": "User", "subject": "shown", "version": 1}]}
    api.done("POST", f"{BASE}/subjects/using/versions", using)
    assert found(api, f"/subjects?asof={before}") == [":.lab:base", ":.lab:target"]
    assert found(api, f"/subjects/shown/versions?asof={before}")["error_code"] == 40401
    assert "shown" in found(api, f"/subjects?asof={before + 5}")
    api.done("DELETE", f"{BASE}/subjects/:.lab:target/versions/2")
    assert found(api, "/subjects/shown/versions") == [1]


def test_a_resource_with_an_xref_is_not_written(api: Api) -> None:
    # CSR-909, CSR-517
    api.done("POST", f"{BASE}/subjects/target/versions", {"schema": '"int"'})
    api.done("POST", f"{BASE}/subjects/shown/versions", {"schema": '"string"'})
    api.done("PUT", f"{GROUP}/shown/meta", {"xref": f"{GROUP}/target"})
    api.done("PUT", f"{GROUP}/lost/meta", {"xref": f"{GROUP}/nothing"})
    head = api.send("GET", "/-/log/head").json()
    known = api.done("POST", f"{BASE}/subjects/shown/versions", {"schema": '"int"'}).json()
    assert (known["version"], known["id"]) == (1, 1)
    for method, path, body in (
        ("POST", "/subjects/shown/versions", {"schema": '"long"'}),
        ("POST", "/subjects/shown/versions?force=true", {"schema": '"string"'}),
        ("POST", "/subjects/lost/versions", {"schema": '"int"'}),
        ("DELETE", "/subjects/shown", None),
        ("DELETE", "/subjects/shown?permanent=true", None),
        ("DELETE", "/subjects/shown/versions/1", None),
        ("PUT", "/config/shown", {"compatibility": "NONE"}),
        ("PUT", "/mode/shown", {"mode": "READONLY"}),
    ):
        refused = api.send(method, BASE + path, body)
        assert (refused.status_code, refused.json()["error_code"]) == (422, 42205), f"{method} {path}: {refused.text}"
    assert api.send("GET", "/-/log/head").json() == head
    assert found(api, "/subjects") == ["shown", "target"]
    assert found(api, "/subjects/lost/versions")["error_code"] == 40401
    assert api.send("GET", f"{BASE}/schemas/ids/2/schema").text == '"string"'


def test_a_version_with_a_schemaurl_is_not_shown(api: Api) -> None:
    # CSR-909, CSR-405
    api.done("PUT", f"{GROUP}/remote$details", {"format": FORMAT, "schemaurl": "https://h.example/a"})
    assert found(api, "/subjects") == []
    assert found(api, "/subjects/remote/versions")["error_code"] == 40401


def test_another_group_is_the_default_context(store_url: str) -> None:
    # CSR-306, CSR-508
    create(store_url, default_source())
    with serving(store_url, confluent_group="main") as api:
        api.done("POST", f"{BASE}/subjects/r/versions", {"schema": RECORD})
        assert api.send("GET", "/schemagroups/main/schemas/r").text == RECORD
        api.done("POST", f"{BASE}/subjects/:.default:r/versions", {"schema": '"int"'})
        assert api.send("GET", "/schemagroups/default/schemas/r").text == '"int"'
        body = {"schema": USER, "references": [{"name": "R", "subject": "r", "version": 1}]}
        assert api.done("POST", f"{BASE}/subjects/u/versions", body).json()["id"] == 3
        assert found(api, "/subjects/r/versions/1/referencedby") == [3]
        qualified = {"schema": USER, "references": [{"name": "R", "subject": ":.:r", "version": 1}]}
        assert api.done("POST", f"{BASE}/subjects/:.default:q/versions", qualified).json()["id"] == 4
        assert found(api, "/contexts") == [".", ".default"]
        assert found(api, "/subjects") == [":.default:q", ":.default:r", "r", "u"]


def test_a_level_that_another_api_sets_replaces_none(api: Api) -> None:
    # CSR-713: absent again, it is not configured
    api.done("POST", f"{BASE}/subjects/a/versions", {"schema": '"int"'})
    api.done("PUT", f"{BASE}/config/a", {"compatibility": "NONE", "alias": "b"})
    api.done("PATCH", f"{GROUP}/a/meta", {"compatibility": "full"})
    assert found(api, "/config/a") == {"compatibilityLevel": "FULL", "alias": "b"}
    api.done("PATCH", f"{GROUP}/a/meta", {"compatibility": None})
    assert found(api, "/config/a") == {"compatibilityLevel": "BACKWARD", "alias": "b"}


def test_what_refers_to_a_deleted_group_stays_readable(api: Api) -> None:
    # CSR-508, CSR-607: soft-deleted versions are found by what refers to them, also if their context is gone
    api.done("POST", f"{BASE}/subjects/:.lab:r/versions", {"schema": RECORD})
    user = {"schema": USER, "references": [{"name": "R", "subject": ":.lab:r", "version": 1}]}
    api.done("POST", f"{BASE}/subjects/u/versions", user)
    api.done("DELETE", "/schemagroups/lab")
    assert api.done("POST", f"{BASE}/subjects/u", user).json()["version"] == 1
    assert found(api, "/subjects/u/versions/1?format=resolved")["schema"] == RESOLVED_USER
    assert api.done("POST", f"{BASE}/subjects/u/versions", {"schema": RESOLVED_USER}).json()["version"] == 1
    assert api.done("POST", f"{BASE}/subjects/u/versions?force=true", {"schema": RECORD}).json()["version"] == 2
    refused = api.send("POST", f"{BASE}/subjects/other/versions", user)
    assert (refused.status_code, refused.json()["error_code"]) == (422, 42201)


def test_the_longest_names(api: Api) -> None:
    # CSR-311: a name of 4096 characters, which is too long for the attribute `name` of its Version
    for name in ("n" * 4096, "n" * 4095 + "~"):
        path = f"/subjects/{name}/versions"
        api.done("POST", f"{BASE}{path}", {"schema": RECORD})
        assert found(api, path) == [1]
    assert found(api, "/subjects") == ["n" * 4096, "n" * 4095 + "~"]


@pytest.mark.parametrize("at_once", [0, schema_versions.NEWEST_VERSIONS])
def test_the_older_of_two_resources_with_one_name_is_the_subject(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    # CSR-308, CSR-704: its mode holds, however many Versions another API adds to the other one
    monkeypatch.setattr(schema_versions, "NEWEST_VERSIONS", at_once)
    create(sqlite_url, default_source())
    with serving(sqlite_url) as api:
        api.done("PUT", f"{BASE}/config", {"compatibility": "NONE"})
        for name, text in (("a", '"int"'), ("A", '"int"'), ("A", '"long"')):
            api.done("POST", f"{BASE}/subjects/{name}/versions", {"schema": text})
        api.done("PUT", f"{BASE}/mode/A", {"mode": "READONLY"})
        for parameters in ("", "?permanent=true"):
            api.done("DELETE", f"{BASE}/subjects/a{parameters}")
        for number in range(30, 50):
            schema = {"type": "record", "name": "R", "doc": f"{number}", "fields": []}
            api.done("PUT", f"{GROUP}/A/versions/{number}$details", {"format": FORMAT, "schema": schema})
        assert api.send("GET", f"{BASE}/mode/A").json() == {"mode": "READONLY"}
        assert api.send("POST", f"{BASE}/subjects/A/versions", {"schema": '"string"'}).status_code == 422
