"""The OpenAPI document of the current model, and the page that shows it."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from annals.api.audit import diff, history, interactions, tree_hash_params
from annals.api.http import compression
from annals.api.messaging import findings
from annals.api.openapi.html_page import render_page
from annals.api.openapi.problems import ALL_PROBLEM_TYPES
from annals.api.ops.own_paths import OWN_PATHS
from annals.api.registry.capabilities import Capabilities
from annals.api.xregistry.openapi.document import openapi_document
from annals.api.xregistry.openapi.operations import SUMMARIES
from annals.api.xregistry.openapi.schemas import attribute_schema
from annals.api.xregistry.request.paths import METHODS, PathKind
from annals.domain.decisions.capabilities import INITIAL
from annals.domain.model import compile_model
from annals.domain.model.builtin import default_source
from tests.support.registries.in_process import BASE, MODEL, Api, create, serving

Json = Any
ALL = Capabilities.from_document(INITIAL)


@pytest.fixture
def described(api: Api) -> Json:
    return api.get("/-/openapi.json")


def flags(document: Json) -> set[str]:
    """The names of the query parameters in a document."""
    return {row["name"] for row in document["components"]["parameters"].values() if row["in"] == "query"}


def schema(document: Json, name: str) -> Draft202012Validator:
    """A validator for one of a document's schemas."""
    return Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": document["components"]})


def test_it_is_openapi(described: Json) -> None:
    # OpenAPI 3.1, for a small model and for the default model
    assert list(OpenAPIV31SpecValidator(described).iter_errors()) == []
    built_in = openapi_document(compile_model(default_source()), ALL, BASE, OWN_PATHS)
    assert list(OpenAPIV31SpecValidator(built_in).iter_errors()) == []


def test_it_has_every_path_and_method(api: Api, described: Json) -> None:
    # core 4.2: OPTIONS and the document list the same methods for each path
    assert described["servers"] == [{"url": BASE}]
    api.done("PUT", "/dirs/d/files/f$details", {})
    ids = {"{dirid}": "d", "{fileid}": "f", "{versionid}": "1", "{noteid}": "n", "{token}": "0"}
    ids |= {"{name}": "schemaregistry", "{path}": "dirs", "{xregcorrelationid}": "id1", "{sha256}": "0"}
    subscription = api.done("POST", "/subscriptions", {"sink": "https://93.184.216.34/", "protocol": "HTTP"}).json()
    ids |= {"{id}": subscription["id"], "{action}": "pause", "{sequence}": "0", "{secret}": "0"}
    for path, item in described["paths"].items():
        read = item.get("get", {"responses": {"200": {}}})["responses"]
        if "200" not in read:
            continue  # it only redirects
        real_path = re.sub(r"{\w+}", lambda found: ids[found[0]], path)
        allow = set(api.send("OPTIONS", real_path).headers["allow"].split(", ")) - {"HEAD", "OPTIONS"}
        if read["200"].get("$ref", "").startswith("#/components/responses/Document-"):
            allow -= {"PATCH"}  # of a document, only the metadata can be changed in part
        assert {method.upper() for method in item if method not in ("parameters", "options")} == allow, path
    counts = {
        "the registry": 6,
        "dirs": 2,
        "files, with documents": 7,
        "notes": 5,
        "our own": 10,
        "audit": 4,
        "hashes": 1,
        "findings": 1,
        "feeds": 5,
        "messages": 3,
        "checking": 1,
        "comparing": 1,
        "counting": 1,
        "references": 1,
        "searching": 1,
        "restoring": 1,
        "settings": 1,
        "subjects of Confluent's API": 1,
        "subscriptions": 9,
        "links": 5,
        "access": 7,
        "discovery": 2,
    }
    assert len(described["paths"]) == sum(counts.values())


QUERIES = {
    "/-/history/{path}": history.PARAMETERS,
    "/-/interactions": interactions.LIST_PARAMS,
    "/-/interactions/{xregcorrelationid}": interactions.ONE_PARAMS,
    "/-/diff/{path}": diff.PARAMETERS,
    "/-/hash/{path}": tree_hash_params.HASH_PARAMS,
    "/-/findings/{path}": findings.PARAMETERS,
}


@pytest.mark.parametrize("path", QUERIES)
def test_what_a_query_may_say_is_described(path: str) -> None:
    # core 4.2: the parameters that a route takes are those of its description
    described = {row["name"] for row in OWN_PATHS.part[path]["parameters"] if row["in"] == "query"}
    assert described == set(QUERIES[path])


def test_only_some_requests_make_something_new(described: Json) -> None:
    # core 4.2: 201 belongs to PUT, PATCH and to the POST of a Version
    made = {
        (method, path.count("/"))
        for path, item in described["paths"].items()
        for method, row in item.items()
        if method != "parameters" and "201" in row["responses"]
    }
    assert made == {
        ("put", 2),
        ("patch", 2),
        ("post", 4),
        ("post", 1),  # a subscription
        *(("post", 2), ("put", 3)),  # a link
        *((m, depth) for m in ("put", "patch") for depth in (4, 5, 6)),
    }


def test_operations_have_names_of_their_own() -> None:
    # also if types of different levels share names, or have names of schemas that every registry has
    odd = {"singular": "version", "resources": {"model": {"singular": "version_"}, "registry": {"singular": "metax"}}}
    found = openapi_document(
        compile_model({"groups": {"problem": odd, "registries": {"singular": "registry"}}}), ALL, BASE, OWN_PATHS
    )
    assert list(OpenAPIV31SpecValidator(found).iter_errors()) == []
    names = [row["operationId"] for item in found["paths"].values() for key, row in item.items() if key != "parameters"]
    assert len(names) == len(set(names))


def test_it_follows_the_model_and_the_capabilities(api: Api) -> None:
    # a change of either is in the next response
    api.done("PUT", "/modelsource", {"groups": {**MODEL["groups"], "boxes": {"singular": "box"}}})
    assert "/boxes/{boxid}" in api.get("/-/openapi.json")["paths"]
    assert "/boxes/{boxid}" in api.send("GET", "/-/docs").text
    api.done("PATCH", "/capabilities", {"flags": ["doc"]})
    found = api.get("/-/openapi.json")
    assert flags(found) == {"doc", "limit", "cursor", "asof", "dryrun", "stated", "waitfor", "timeout"}
    api.done("PATCH", "/capabilities", {"pagination": False})
    assert flags(api.get("/-/openapi.json")) == {"doc", "asof", "dryrun", "stated", "waitfor", "timeout"}
    available = {name: {"mutable": name == "capabilities"} for name in ("capabilities", "entities", "model")}
    api.done("PATCH", "/capabilities", {"available": available})
    found = api.get("/-/openapi.json")
    assert set(found["paths"]["/boxes"]) == {"get"}
    assert "/export" not in found["paths"]


def test_answers_fit_their_schemas(api: Api, described: Json) -> None:
    # every view of an entity, with and without inlined parts
    api.done("PUT", "/dirs/d/files/f$details", {"size": 3, "file": {"a": 1}, "labels": {"a": "b"}})
    api.done("POST", "/dirs/d/files/f$details", {"fileurl": "http://elsewhere/x", "other": [1]})
    api.done("PUT", "/dirs/d/notes/n", {"name": "n"})
    paths = {
        "Registry": "/",
        "Dir": "/dirs/d",
        "DirFile": "/dirs/d/files/f$details",
        "DirFileMeta": "/dirs/d/files/f/meta",
        "DirFileVersion": "/dirs/d/files/f/versions/1$details",
        "DirNote": "/dirs/d/notes/n",
        "Capabilities": "/capabilities",
        "Model": "/model",
        "ModelSource": "/modelsource",
    }
    for name, path in paths.items():
        for flags in ("", "?inline", "?doc", "?doc&inline"):
            assert [error.message for error in schema(described, name).iter_errors(api.get(path + flags))] == []
            if name.startswith("Dir"):
                assert schema(described, f"{name}Input").is_valid(api.get(path + flags))
    refused = api.send("GET", "/nope").json()
    assert schema(described, "Problem").is_valid(refused)
    assert schema(described, "OwnProblem").is_valid(api.send("GET", "/-/nope").json())


FOUND: Json = {"usage": ["producer"], "channel": ""}
PAST: Json = {"endpoints": {"e": {"usage": "producer", "channel": ""}}}
KEYS: Json = {"protocol": "KAFKA", "protocoloptions": {"key": "k", "key_base64": "k"}}
MESSAGE = "/messagegroups/{messagegroupid}/messages/{messageid}"
SCHEMA = "/schemagroups/{schemagroupid}/schemas/{schemaid}"
#: Method, path, query, body, and whether the write has findings.
WRITES = (
    ("PUT", "/endpoints/{endpointid}", "", FOUND, True),
    ("PATCH", "/endpoints/{endpointid}", "?dryrun", FOUND, True),
    ("POST", "/endpoints", "", {"e": FOUND}, True),
    ("POST", "/", "", {"endpoints": {"e": FOUND}}, True),
    ("PUT", MESSAGE, "", KEYS, True),
    ("POST", MESSAGE, "", {"versionid": "0", **KEYS}, True),
    ("POST", "/-/import", "?dialect=endpoint-1.0-rc2", PAST, True),
    ("POST", "/-/import", "?dialect=endpoint-1.0-rc2&dryrun", PAST, True),
    ("DELETE", "/endpoints/{endpointid}", "?dryrun", None, False),
    ("DELETE", "/endpoints/{endpointid}", "", None, False),
    ("POST", "/-/restore/{path}", "?asof=id1", None, True),
    ("PUT", f"{SCHEMA}$details", "", {"format": "Own/1"}, False),
    ("PUT", SCHEMA, "", b"text", False),
)


def test_headers_of_writes_are_described(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # core 4.2: all headers of the response to a write, also those about events and findings (V-01)
    monkeypatch.setattr(compression, "MIN_SIZE", 0)
    create(sqlite_url, default_source())
    with serving(sqlite_url) as api:
        described = api.get("/-/openapi.json")
        for method, path, query, body, finds in WRITES:
            real_path = re.sub(r"{\w+}", "e", path.replace("{path}", "endpoints/e"))
            carried = {"xregistry_format": "Own/1"} if body == b"text" else {}
            answer = api.done(method, real_path + query, body, **carried)
            documented = described["paths"][path][method.lower()]["responses"][str(answer.status_code)]
            if "$ref" in documented:
                documented = described["components"]["responses"][documented["$ref"].rpartition("/")[2]]
            sent = answer.headers.keys() - {"content-type", "content-length", "vary"}
            assert sent <= {name.lower() for name in documented["headers"]}, (method, path)
            assert ("annals-findings" in sent) == finds, (method, path)
            assert ("content-encoding" in sent) == bool(answer.content and body != b"text"), (method, path)


def responses(document: Json) -> Iterator[tuple[str, Json]]:
    """Every response in a document, with its place."""
    for path, item in document["paths"].items():
        for method, row in item.items():
            for status, answer in row["responses"].items() if method != "parameters" else ():
                yield f"{method} {path} {status}", answer
    yield from document["components"]["responses"].items()


@pytest.mark.parametrize("name", ["openapi.json", "openapi/schemaregistry.json", "openapi/messagecatalog.json"])
def test_answers_with_data_may_be_compressed(api: Api, name: str) -> None:
    # RFC 9110 8.4: data may be compressed; responses without a body and streams of events are not
    document = api.get(f"/-/{name}")
    assert "Content-Encoding" in document["components"]["headers"]
    for place, answer in responses(document):
        types = answer.get("content", {})
        if "*/*" not in types and "$ref" not in answer:
            data = types.keys() & {"application/json", "application/x-ndjson", "text/csv"}
            assert ("Content-Encoding" in answer.get("headers", {})) == bool(data), place


def test_a_schema_distinguishes_valid_and_invalid_bodies(described: Json) -> None:
    # types, nulls in requests only, members that the model does not have
    good = schema(described, "DirInput")
    assert good.is_valid({"name": None, "self": 42, "files": {"f": {"size": 1, "meta": {"xref": None}}}})
    assert not good.is_valid({"name": 1})
    assert not good.is_valid({"nope": 1})
    assert not good.is_valid({"files": {"f": {"size": "1"}}})
    assert not schema(described, "Dir").is_valid({"dirid": "d"})


@pytest.mark.parametrize(
    ("definition", "good", "bad"),
    [
        ({"type": "uinteger"}, 0, -1),
        ({"type": "decimal"}, 1.5, "1.5"),
        ({"type": "boolean"}, False, 0),
        ({"type": "xid"}, "/dirs/d", "dirs"),
        ({"type": "string", "enum": ["a"], "strict": True}, "a", "b"),
        ({"type": "string", "enum": ["a"], "strict": False}, "b", 1),
        ({"type": "array", "item": {"type": "integer"}}, [1], ["1"]),
        ({"type": "map", "item": {"type": "string"}}, {"a": "b"}, {"a": 1}),
        ({"type": "object", "attributes": {"a": {"type": "integer"}}}, {"a": 1}, {"b": 1}),
        ({"type": "object", "attributes": {"*": {"type": "string"}}}, {"b": "1"}, {"b": 1}),
    ],
)
def test_types_of_attributes(definition: Json, good: Json, bad: Json) -> None:
    # MOD 2.2: each type; an enumeration limits values only if it is strict
    validator = Draft202012Validator(attribute_schema(definition))
    assert (validator.is_valid(good), validator.is_valid(bad)) == (True, False)


def test_what_a_value_switches_on() -> None:
    # MOD-20: the value determines the types of its siblings; with another value or spelling they have any type
    kinds = {"type": "string", "ifvalues": {"big": {"siblingattributes": {"size": {"type": "integer"}}}}}
    count = {"type": "integer", "ifvalues": {"1": {"siblingattributes": {"one": {"type": "string"}}}}}
    validator = Draft202012Validator(
        attribute_schema({"type": "object", "attributes": {"kind": kinds, "count": count}})
    )
    assert validator.is_valid({"kind": "big", "size": 1, "count": 1, "one": "x"})
    assert not validator.is_valid({"kind": "big", "size": "1"})
    assert not validator.is_valid({"count": 1, "one": 2})
    assert validator.is_valid({"kind": "BIG", "size": 1})
    assert validator.is_valid({})


def test_every_problem_is_described(described: Json) -> None:
    # ERR-10: the response of a status names its problem types, and each operation has all of these statuses
    for kind in ALL_PROBLEM_TYPES:
        for name in ("Problem", "OwnProblem"):
            description = described["components"]["responses"][f"{name}-{kind.status}"]["description"]
            assert re.search(rf"\b{kind.name}\b", description)
    statuses = {str(kind.status) for kind in ALL_PROBLEM_TYPES} - {
        "409",
        "415",
        "429",
        "502",
    }  # those of subscriptions and links
    for path, item in described["paths"].items():
        for method, row in item.items():
            if method != "parameters" and not path.startswith(("/-/", "/.", "/subscriptions")):
                assert statuses <= row["responses"].keys(), (method, path)


def test_documents_travel_with_headers(described: Json) -> None:
    # HTTP-41: a scalar attribute is a header in both directions, other attributes are not
    put = described["paths"]["/dirs/{dirid}/files/{fileid}"]["put"]
    names = {each["$ref"].rpartition(".")[2] for each in put["parameters"] if "xregistry-" in each["$ref"]}
    assert {"xregistry-size", "xregistry-name", "xregistry-fileurl"} <= names
    assert not {"xregistry-tags", "xregistry-file", "xregistry-epoch_", "xregistry-contenttype"} & names
    shown = described["components"]["responses"]["Document-dirs.files"]["headers"]
    assert {"xRegistry-self", "xRegistry-size"} <= shown.keys()


def test_the_alias(api: Api) -> None:
    # HTTP-4: the same at the root
    assert api.get("/openapi.json") == api.get("/-/openapi.json")
    assert api.send("PUT", "/openapi.json", {}).status_code == 405
    assert api.send("DELETE", "/-/docs").headers["content-type"] == "application/problem+json"


class Page(HTMLParser):
    """The parts of a page that a browser would load, run or jump to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.jumps: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.add(tag)
        self.attributes |= set(given)
        self.ids += [given["id"] or ""] if "id" in given else []
        if (given.get("href") or "").startswith("#"):
            self.jumps.add((given["href"] or "")[1:])


def test_the_page_needs_nothing_from_elsewhere(api: Api) -> None:
    # one file, no script, and a policy that allows its own style only
    answer = api.send("GET", "/-/docs")
    found = Page(answer.text)
    assert not found.tags & {"script", "link", "img", "iframe", "object", "form", "base"}
    assert not found.attributes & {"src", "style", "onclick", "onload", "srcset"}
    [style] = re.findall(r"<style>(.*?)</style>", answer.text, re.S)
    hashed = b64encode(sha256(style.encode()).digest()).decode()
    policy = answer.headers["content-security-policy"]
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{hashed}';")
    assert not re.search(r"url\(|@import", style)


def test_the_page_has_an_anchor_for_whatever_is_pointed_to(api: Api) -> None:
    # the types of problems link to `/-/docs#<name>`; ids are unique
    found = Page(api.send("GET", "/-/docs").text)
    assert {kind.name for kind in ALL_PROBLEM_TYPES} <= set(found.ids)
    assert len(found.ids) == len(set(found.ids))
    assert found.jumps <= set(found.ids)


def test_the_page_says_what_to_do_about_a_problem(api: Api) -> None:
    entry = api.send("GET", "/-/docs").text.partition('<dt id="mismatched_epoch">')[2].partition("</dd>")[0]
    assert "<p>Cause: The entity has changed since the client read it" in entry
    assert "<p>Cure: Read the entity, apply the change to its new state" in entry
    assert "<code>epoch</code>" in entry


@pytest.mark.parametrize(("text", "shown"), [("<script>alert(1)</script>", "&lt;script&gt;"), ("a & b", "a &amp; b")])
def test_what_a_model_says_is_text(api: Api, text: str, shown: str) -> None:
    # a description of a type or an attribute cannot become markup
    about = {"type": "string", "description": text, "required": True, "default": text}
    source = {"groups": {"dirs": {"singular": "dir", "description": text, "attributes": {"about": about}}}}
    api.done("PUT", "/modelsource", source)
    page = api.send("GET", "/-/docs").text
    assert shown in page
    assert text not in page
    elsewhere = {**api.get("/-/openapi.json"), "servers": [{"url": '"><b>'}]}
    assert '<a href="&#34;&gt;&lt;b&gt;/">&#34;&gt;&lt;b&gt;</a>' in render_page(elsewhere)


def test_all_kinds_of_paths_are_summed_up() -> None:
    # also a kind or a method that is added later has a summary
    assert {kind: set(methods) for kind, methods in METHODS.items()} == {
        kind: set(SUMMARIES[kind]) for kind in PathKind
    }
