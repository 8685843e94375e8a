"""Findings over HTTP: counted, refused, and listed, on each database."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

from annals.domain.model.builtin import default_source
from tests.data import SCENARIOS
from tests.support.registries.in_process import Api, serving

Json = Any

GROUP, MESSAGE = "/messagegroups/g", "/messagegroups/g/messages/m"
COUNT = "annals-findings"
#: Three findings: two of an endpoint, one of a message.
STORY = (
    ("/endpoints/e", {"usage": ["producer"], "channel": "", "protocol": "BunnyMQ"}),
    (GROUP, {"protocol": "KAFKA"}),
    (MESSAGE, {"protocol": "HTTP", "protocoloptions": {}}),
    (f"{GROUP}/messages/n", {"protocol": "KAFKA", "protocoloptions": {}}),
    ("/schemagroups/s/schemas/s$details", {"format": "Own/1"}),
)
CHANNEL = {"level": "L2", "rule": "EP-09", "xid": "/endpoints/e", "path": "/channel", "text": "it is empty"}
NAME = {
    "level": "L3",
    "rule": "EP-12",
    "xid": "/endpoints/e",
    "path": "/protocol",
    "text": "a protocol should be named <NAME>/<VERSION>",
}
AGREES = {
    "level": "L2",
    "rule": "MS-03",
    "xid": MESSAGE,
    "path": "/protocol",
    "text": "the message group has another protocol",
}


@pytest.fixture
def warned(store_url: str) -> Iterator[Api]:
    """A registry with the built-in model, on each database in turn, after the writes of STORY."""
    with serving(store_url) as api:
        for path, body in STORY:
            api.done("PUT", path, body)
        yield api


@pytest.fixture
def strict(sqlite_url: str) -> Iterator[Api]:
    with serving(sqlite_url, domain_validation="strict") as api:
        yield api


def listed(api: Api, path: str) -> list[Json]:
    """The findings below a path."""
    found: list[Json] = api.get(f"/-/findings{path}")["findings"]
    return found


@pytest.fixture(autouse=True)
def at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the setting of the machine."""
    monkeypatch.delenv("ANNALS_DOMAIN_VALIDATION", raising=False)


def test_a_write_returns_the_number_of_findings(sqlite_url: str) -> None:
    # V-01, V-16: L2 and L3 count alike; without findings there is no header
    with serving(sqlite_url) as api:
        counts = [api.done("PUT", path, body).headers.get(COUNT) for path, body in STORY]
        assert counts == ["2", None, "1", None, None]
        assert api.done("PUT", f"{MESSAGE}?dryrun", STORY[2][1]).headers[COUNT] == "1"
        assert api.done("DELETE", MESSAGE).headers.get(COUNT) is None
        assert api.done("PATCH", "/endpoints/e", {"channel": "c"}).headers[COUNT] == "1"
        assert api.done("POST", "/-/restore/endpoints/e?asof=id2").headers[COUNT] == "2"


def test_off_skips_all_checks(sqlite_url: str) -> None:
    with serving(sqlite_url, domain_validation="off") as api:
        assert [api.done("PUT", path, body).headers.get(COUNT) for path, body in STORY] == [None] * len(STORY)
        # stored entities are checked when findings are requested
        assert [each["rule"] for each in listed(api, "/endpoints")] == ["EP-09", "EP-12"]


def test_strict_reports_all_findings(strict: Api) -> None:
    # V-01: an L2 finding refuses the write, and nothing is stored; L3 findings alone do not
    refused = strict.send("PUT", "/endpoints/e", STORY[0][1])
    assert refused.status_code == 400
    body = refused.json()
    assert body["type"].endswith("#invalid_attribute")
    assert body["subject"] == "/endpoints/e"
    assert body["args"] == {"name": "channel", "error_detail": "it is empty"}
    assert body["detail"] == "EP-09 at /channel: it is empty"
    assert body["findings"] == [CHANNEL, NAME]
    assert strict.send("GET", "/endpoints/e").status_code == 404
    assert strict.done("PUT", "/endpoints/e", {"usage": ["producer"], "protocol": "BunnyMQ"}).headers[COUNT] == "1"


def test_strict_wants_a_role_even_of_an_implied_endpoint(strict: Api) -> None:
    # EP-03: the model itself does not require a role
    refused = strict.send("PUT", "/endpoints/e9/messages/m1", {})
    assert refused.json()["type"].endswith("#required_attribute_missing")
    assert refused.json()["args"] == {"list": "usage"}


def test_an_implied_endpoint_is_counted(sqlite_url: str) -> None:
    # EP-03: accepted with a warning
    with serving(sqlite_url) as api:
        assert api.done("PUT", "/endpoints/e9/messages/m1", {}).headers[COUNT] == "1"


def test_a_group_that_changes_concerns_its_messages(strict: Api) -> None:
    # MS-03, EP-11: also messages with an xref to another group; the finding is of the message, not of the group
    strict.done("PUT", MESSAGE, {"protocol": "HTTP", "protocoloptions": {}})
    strict.done("PUT", "/messagegroups/h/messages/p/meta", {"xref": MESSAGE})
    strict.done("PUT", "/endpoints/e", {"usage": ["producer"]})
    strict.done("PUT", "/endpoints/e/messages/q/meta", {"xref": MESSAGE})
    for path, message, rule in (
        (GROUP, MESSAGE, "MS-03"),
        ("/messagegroups/h", "/messagegroups/h/messages/p", "MS-03"),
        ("/endpoints/e", "/endpoints/e/messages/q", "EP-11"),
    ):
        refused = strict.send("PATCH", path, {"protocol": "KAFKA"})
        assert refused.json()["subject"] == message
        assert refused.json()["detail"].startswith(f"{rule} at /protocol")
        strict.done("PATCH", path, {"protocol": "http"})
        strict.done("PATCH", path, {"name": "x"})


def test_a_message_that_changes_concerns_those_that_show_it(strict: Api) -> None:
    # MS-03: the target of an xref changes later
    strict.done("PUT", MESSAGE, {})
    strict.done("PUT", "/messagegroups/h", {"protocol": "KAFKA", "messages": {"p": {"meta": {"xref": MESSAGE}}}})
    refused = strict.send("PUT", MESSAGE, {"protocol": "HTTP", "protocoloptions": {}})
    assert refused.json()["subject"] == "/messagegroups/h/messages/p"
    strict.done("PUT", MESSAGE, {"protocol": "KAFKA", "protocoloptions": {}})


def test_one_request_is_judged_as_a_whole(strict: Api) -> None:
    # V-02, MS-14: the state after the request is checked, whatever the order in the request
    strict.done("PUT", GROUP, {"protocol": "KAFKA", "messages": {"m": {"protocol": "KAFKA", "protocoloptions": {}}}})
    strict.done("PUT", GROUP, {"protocol": "HTTP", "messages": {"m": {"protocol": "HTTP", "protocoloptions": {}}}})
    circle = {"a": {"basemessageuri": f"{GROUP}/messages/b"}, "b": {"basemessageuri": f"{GROUP}/messages/a"}}
    refused = strict.send("POST", f"{GROUP}/messages", circle)
    assert [each["rule"] for each in refused.json()["findings"]] == ["MS-14", "MS-14"]
    strict.done("POST", f"{GROUP}/messages", {**circle, "b": {}})


def test_groups_that_are_referred_to_may_go(strict: Api) -> None:
    # EP-45: the reference dangles, and is not removed with its target
    strict.done("PUT", GROUP, {})
    strict.done("PUT", "/endpoints/e", {"usage": ["producer"], "messagegroups": [GROUP]})
    strict.done("DELETE", GROUP)
    assert strict.get("/endpoints/e")["messagegroups"] == [GROUP]
    assert [each["rule"] for each in listed(strict, "/endpoints/e")] == ["EP-42"]


def test_removal_before_effect_is_the_models_to_refuse(sqlite_url: str) -> None:
    # V-15: also if domain validation is off
    dates = {"effective": "2031-01-01T00:00:00Z", "removal": "2030-01-01T00:00:00Z"}
    with serving(sqlite_url, domain_validation="off") as api:
        for path, body in (("/endpoints/e", {"deprecated": dates}), (MESSAGE, {"meta": {"deprecated": dates}})):
            assert api.send("PUT", path, body).json()["args"]["name"] == "deprecated.removal"


def test_findings_are_listed_in_the_order_of_the_tree(warned: Api) -> None:
    assert warned.get("/-/findings") == {"xid": "/", "findings": [CHANNEL, NAME, AGREES]}
    assert listed(warned, "/endpoints") == listed(warned, "/endpoints/e") == [CHANNEL, NAME]
    assert (
        listed(warned, "/messagegroups/g") == listed(warned, MESSAGE) == listed(warned, f"{MESSAGE}/meta") == [AGREES]
    )
    assert listed(warned, f"{GROUP}/messages/n") == listed(warned, "/schemagroups") == []
    assert listed(warned, f"{MESSAGE}/versions/1") == [{**AGREES, "xid": f"{MESSAGE}/versions/1"}]
    assert listed(warned, f"{MESSAGE}/versions") == []


def test_findings_can_be_chosen(warned: Api) -> None:
    assert listed(warned, "?level=L2") == [CHANNEL, AGREES]
    assert listed(warned, "?rule=EP-12,MS-03") == [NAME, AGREES]
    assert listed(warned, "?rule=EP-12&level=L2") == []
    for wrong in ("level=L1", "level=L2&level=L3", "limit=0", "after=x", "filter=a", "format=xml", "asof="):
        assert warned.send("GET", f"/-/findings?{wrong}").status_code == 400, wrong
    for missing in ("/endpoints/none", "/none", "/model", "/endpoints/e/messages/none", "/endpoints/none/messages"):
        assert warned.send("GET", f"/-/findings{missing}").status_code == 404, missing
    assert warned.send("POST", "/-/findings").status_code == 405
    assert warned.send("OPTIONS", "/-/findings").headers["allow"] == "GET, HEAD, OPTIONS"


def test_pages_go_on_where_the_last_one_ended(warned: Api) -> None:
    path, found = "/-/findings?limit=1", list[Json]()
    while path:
        answer = warned.send("GET", path)
        found += answer.json()["findings"]
        link = next((each for each in answer.headers["link"].split(", ") if "rel=next" in each), "")
        path = link.partition(";")[0].strip("<>").removeprefix("http://h/r")
    assert found == [CHANNEL, NAME, AGREES]
    assert "after" not in warned.send("GET", "/-/findings?limit=3").headers["link"]


def test_lines_and_cells(warned: Api) -> None:
    lines = warned.send("GET", "/-/findings", accept="application/x-ndjson")
    assert lines.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line) for line in lines.text.splitlines()] == [CHANNEL, NAME, AGREES]
    table = warned.send("GET", "/-/findings?format=csv").text
    assert list(csv.DictReader(io.StringIO(table))) == [CHANNEL, NAME, AGREES]


def test_a_known_entity_tag_gets_304(warned: Api) -> None:
    tag = warned.send("GET", "/-/findings").headers["etag"]
    assert warned.send("GET", "/-/findings", if_none_match=tag).status_code == 304
    warned.done("PATCH", "/endpoints/e", {"channel": None})
    assert warned.send("GET", "/-/findings", if_none_match=tag).json()["findings"] == [NAME, AGREES]


def test_findings_of_the_past(warned: Api) -> None:
    # FLAG-80: findings of the state at that moment, including the state of a message's group
    warned.done("PATCH", "/endpoints/e", {"channel": "c"})
    warned.done("PATCH", GROUP, {"protocol": None})
    assert listed(warned, "") == [NAME]
    then = warned.send("GET", "/-/findings?asof=id3")
    assert then.json()["findings"] == [CHANNEL, NAME]
    assert "memento-datetime" in then.headers
    assert listed(warned, "?asof=id5") == [CHANNEL, NAME, AGREES]
    assert warned.send("GET", "/-/findings/endpoints/e?asof=0").status_code == 404


def test_what_stands_for_another_has_the_findings_of_a_member(warned: Api) -> None:
    # MS-03: a message with an xref has only the findings about its group; its target has the others
    warned.done("PUT", "/messagegroups/h", {"protocol": "NATS"})
    warned.done("PUT", "/messagegroups/h/messages/p/meta", {"xref": MESSAGE})
    warned.done("PUT", "/messagegroups/h/messages/z/meta", {"xref": f"{GROUP}/messages/none"})
    warned.done("PATCH", MESSAGE, {"datacontenttype": "x"})
    pointed = {**AGREES, "xid": "/messagegroups/h/messages/p"}
    assert [each["rule"] for each in listed(warned, GROUP)] == ["MS-03", "MS-66"]
    assert listed(warned, "/messagegroups/h") == listed(warned, "/messagegroups/h/messages/p") == [pointed]


def test_versions_of_a_model_that_keeps_them_have_their_own(sqlite_url: str) -> None:
    # MS-66: findings in the default Version belong to the message, those in other Versions to the Version
    source = default_source()
    source["groups"]["messagegroups"]["resources"]["messages"]["maxversions"] = 0
    with serving(sqlite_url) as api:
        api.done("PUT", "/modelsource", source)
        versions = {"1": {"datacontenttype": "x"}, "2": {"datacontenttype": "y"}}
        assert api.done("PUT", MESSAGE, {"versions": versions}).headers[COUNT] == "2"
        assert {each["xid"] for each in listed(api, "")} == {MESSAGE, f"{MESSAGE}/versions/1"}


def test_types_of_another_shape_have_no_rules(sqlite_url: str) -> None:
    with serving(sqlite_url, domain_validation="strict") as api:
        api.done(
            "PUT",
            "/modelsource",
            {"groups": {"endpoints": {"singular": "endpoint", "attributes": {"*": {"type": "any"}}}}},
        )
        assert COUNT not in api.done("PUT", "/endpoints/e", {"channel": ""}).headers
        assert listed(api, "") == []


def test_who_sees_single_groups_finds_nothing_of_others(store_url: str) -> None:
    # an entity that the caller may not see does not exist for the caller, so a reference to it dangles
    tokens = json.dumps(
        {"w": {"name": "w", "role": "writer"}, "r": {"name": "r", "groups": {"/messagegroups/g": "reader"}}}
    )
    with serving(store_url, tokens=tokens) as api:
        writer, reader = {"authorization": "Bearer w"}, {"authorization": "Bearer r"}
        api.done("PUT", "/schemagroups/s/schemas/s$details", {"format": "Own/2"}, **writer)
        body = {"dataschemauri": "/schemagroups/s/schemas/s", "dataschemaformat": "Own/1"}
        assert api.done("PUT", MESSAGE, body, **writer).headers[COUNT] == "1"
        found = {
            who: api.send("GET", f"/-/findings{GROUP}", **header).json()["findings"][0]["text"]
            for who, header in (("writer", writer), ("reader", reader))
        }
        assert found == {"writer": "the schema has another format", "reader": "the schema does not exist"}
        assert [each["text"] for each in api.done("GET", "/-/findings", **reader).json()["findings"]] == [
            "the schema does not exist"
        ]
        assert api.send("GET", "/-/findings/schemagroups/s", **reader).status_code == 404


def test_who_writes_to_single_groups_learns_nothing_of_others(store_url: str) -> None:
    # neither the count of findings nor a refusal reveals entities of other groups
    tokens = json.dumps(
        {"w": {"name": "w", "role": "writer"}, "g": {"name": "g", "groups": {"/messagegroups/g": "writer"}}}
    )
    writer, own = {"authorization": "Bearer w"}, {"authorization": "Bearer g"}
    with serving(store_url, tokens=tokens, domain_validation="strict") as api:
        api.done("PUT", "/schemagroups/s/schemas/s$details", {"format": "Own/1"}, **writer)
        for schema in ("s", "none"):
            body = {"dataschemauri": f"/schemagroups/s/schemas/{schema}", "dataschemaformat": "Own/1"}
            assert api.done("PUT", MESSAGE, body, **own).headers[COUNT] == "1"
        api.done(
            "PUT", "/messagegroups/h", {"protocol": "NATS", "messages": {"p": {"meta": {"xref": MESSAGE}}}}, **writer
        )
        refused = api.send("PUT", MESSAGE, {"protocol": "HTTP", "protocoloptions": {}}, **own)
        assert (refused.status_code, refused.json()["subject"]) == (400, MESSAGE)
        assert "/messagegroups/h" not in refused.text


@pytest.mark.parametrize("name", SCENARIOS)
def test_sample_documents(name: str, sqlite_url: str) -> None:
    # SA-05: only schemas of Protobuf have a finding: the name of a message is missing
    with serving(sqlite_url) as api:
        count = api.done("POST", "/", SCENARIOS[name].read_bytes(), content_type="application/json").headers.get(COUNT)
        found = listed(api, "")
    assert {(each["level"], each["rule"]) for each in found} == ({("L2", "SC-20")} if "proto" in name else set())
    assert int(count or 0) == len(found)


def test_inline_schemas_are_checked_in_processes_of_their_own(store_url: str) -> None:
    # MS-65: at a write, and when findings are requested
    bad, good = ({"dataschemaformat": "Avro/1.11", "dataschema": schema} for schema in ({"type": "record"}, "string"))
    with serving(store_url) as api:
        assert api.done("PUT", MESSAGE, bad).headers[COUNT] == "1"
        assert COUNT not in api.done("PUT", f"{GROUP}/messages/n", good).headers
        (found,) = listed(api, "")
        assert (found["rule"], found["xid"], found["path"]) == ("MS-65", MESSAGE, "/dataschema")
    with serving(store_url, ids="x", domain_validation="strict") as api:
        assert api.send("PUT", MESSAGE, bad).json()["detail"].startswith("MS-65 at /dataschema: it is not a schema")
