"""No response has a word of a hidden Group: no OpenAPI path, no legacy API, no error, in the present or the past."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from itertools import product
from typing import Any

import httpx
import pytest

from annals.domain.model.builtin import default_source
from tests.support.registries.get_routes import CONFLUENT, MESSAGES, SCHEMAS, get_routes
from tests.support.registries.in_process import BASE, Api, create, serving

#: The word in all hidden entities, and a word that no entity has and that sorts at the same place.
WORD, NOWHERE = "zebra", "zebrz"
#: Headers that differ between equal responses: a tag has a hash of the query, and each request has an id.
UNEQUAL = ("etag", "x-request-id")
TOKENS = {
    "root": {"name": "root", "role": "admin"},
    "part": {"name": "part", "groups": {"/*/seen": "writer", "/schemagroups/default": "reader", "/*/none-*": "admin"}},
}
HIDDEN_TEXT, SEEN_TEXT = (f'{{"type":"string","doc":"{text}"}}' for text in (WORD, "seen"))
XIDS = [
    "",
    "schemagroups",
    "messagegroups",
    "model",
    "capabilities",
    *(
        f"{path}/{member}"
        for group in ("seen", WORD)
        for path in (f"schemagroups/{group}/schemas", f"messagegroups/{group}/messages", f"endpoints/{group}/messages")
        for member in ("one", WORD)
    ),
    *(f"{plural}/{group}" for plural in ("schemagroups", "messagegroups", "endpoints") for group in ("seen", WORD)),
    f"schemagroups/{WORD}/schemas/{WORD}/versions/1",
]
#: Query strings for paths that have all of their parameters; a position is put into `{}`.
QUERIES = [
    "",
    "asof={}",
    "inline=*",
    "inline=*&doc",
    "inline=*&asof={}",
    "filter=name=zebra*",
    "filter=labels.stage=zebra&inline=*",
    "filter=schemagroups.schemas.name=zebra",
    "filter=schemas.name=zebra",
    "filter=messages.name=zebra&asof={}",
    "filter=xid=/schemagroups/zebra",
    "sort=name",
    "sort=labels.stage=desc&limit=1",
    "limit=1",
    "limit=1000",
    "limit=1&asof={}",
    "documents=true",
    "family=xregistry,schemaregistry,messagecatalog",
    "subject=/schemagroups/zebra",
    "sql=subject LIKE '%25zebra%25'",
    "images",
    "below&images",
    "below&images&order=desc&limit=1",
    "below=false",
    "caller=root",
    "format=csv",
    "from=1",
    "from=1&to={}&format=csv",
    "parts=4",
    "at=/schemagroups/zebra",
    "from=/schemagroups/zebra",
    "deleted=true",
    "deletedOnly=true",
    "latestOnly=true",
    "subjectPrefix=:*:",
    "subjectPrefix=:.zebra:",
    "contextPrefix=.zebra",
    "subject=:.zebra:avro",
    "defaultToGlobal=true",
    "referenceFormat=qualified&format=resolved",
    f"uri=/schemagroups/{WORD}/schemas/one/versions/1",
    f"uri=/messagecatalog/{WORD}/messagedefinitions/one/versions/1",
    f"uri=urn:{WORD}",
]


@pytest.fixture(scope="module")
def api(shared_store_url: str) -> Iterator[Api]:
    """A registry with Groups `seen` and hidden ones, written through each API, some of them deleted again."""
    create(shared_store_url, default_source())
    with serving(shared_store_url, tokens=json.dumps(TOKENS), shortself=True) as api:
        for group, text in (("seen", SEEN_TEXT), (WORD, HIDDEN_TEXT)):
            _fill(api, group, text)
        yield api


def _fill(api: Api, group: str, text: str) -> None:
    def put(method: str, path: str, body: Any) -> None:
        api.done(method, path, body, authorization="Bearer root")

    own = {"name": group, "description": f"about {group}", "labels": {"stage": group}}
    for id in ("one", group):
        schema = {**own, "format": "JsonSchema/draft-07", "schema": {"title": group}, "schemaid": id}
        put("PUT", f"/schemagroups/{group}/schemas/{id}$details", schema)
        message = {**own, "dataschemaformat": "Own/1", "dataschemauri": f"/schemagroups/{group}/schemas/{id}"}
        put("PUT", f"/messagegroups/{group}/messages/{id}", message)
        put("PUT", f"/endpoints/{group}/messages/{id}", own)
    for plural in ("schemagroups", "messagegroups", "endpoints"):
        put("PATCH", f"/{plural}/{group}", own)
        put("PUT", f"/{plural}/{group}-gone", own)
        api.done("DELETE", f"/{plural}/{group}-gone", authorization="Bearer root")
    put("PUT", f"{SCHEMAS}/schemagroups/{group}-old", {"format": "Own", "description": group})
    put("POST", f"{SCHEMAS}/schemagroups/{group}-old/schemas/one?id=urn:{group}", group.encode())
    put("PUT", f"{MESSAGES}/messagecatalog/{group}-old", {"format": "Own", "description": group})
    put("POST", f"{MESSAGES}/messagecatalog/{group}-old/messagedefinitions/one?id=urn:m:{group}", group.encode())
    context = "" if group == "seen" else f":.{WORD}:"
    for subject in (f"{context}avro", f"{context}avro-{group}"):
        put("POST", f"{CONFLUENT}/subjects/{subject}/versions", {"schema": text})
        put("PUT", f"{CONFLUENT}/config/{subject}", {"compatibility": "FULL"})
    if context:
        put("PUT", f"{CONFLUENT}/config/{context}", {"compatibility": "NONE", "alias": ""})
        api.done("DELETE", f"{CONFLUENT}/subjects/{context}avro-{group}", authorization="Bearer root")


def _values(api: Api) -> dict[str, list[str]]:
    """Values for each parameter of a path."""
    position = int(api.send("GET", "/-/log/head", authorization="Bearer root").headers["annals-position"])
    groups, members = ["seen", WORD, "default", f"{WORD}-old", f"{WORD}-gone"], ["one", WORD]
    texts = (*((json.dumps({"title": text}, separators=(",", ":"))) for text in ("seen", WORD)), HIDDEN_TEXT, WORD)
    all_schemas = f"{CONFLUENT}/schemas?subjectPrefix=:*:&deleted=true"
    versions = api.send("GET", all_schemas, authorization="Bearer root").json()
    assert any(WORD in each["subject"] for each in versions)
    return {
        **dict.fromkeys(("endpointid", "messagegroupid", "schemagroupid", "group"), groups),
        **dict.fromkeys(("messageid", "schemaid"), members),
        "id": [*members, *(str(each["id"]) for each in versions)],
        "guid": [each["guid"] for each in versions],
        **{name: ["1"] for name in ("versionid", "number", "sequence")},
        "version": ["1", "latest"],
        "subject": ["avro", WORD, f":.{WORD}:one", f":.{WORD}:avro", f":.{WORD}:avro-{WORD}", f":.{WORD}:"],
        "sha256": [sha256(text.encode()).hexdigest() for text in texts],
        "path": XIDS,
        "xregcorrelationid": [f"id{number}" for number in range(1, 40)],
        "token": [_base36(number) for number in range(position + 1)],
        "name": ["schemaregistry"],
        "secret": ["x"],
    }


def _base36(number: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    return digits[number] if number < 36 else _base36(number // 36) + digits[number % 36]


def _seen(answer: httpx.Response) -> tuple[int, list[tuple[str, str]], str]:
    """Status, headers and body of a response, with NOWHERE in place of WORD."""
    headers = [(name, value.replace(WORD, NOWHERE)) for name, value in answer.headers.items() if name not in UNEQUAL]
    return answer.status_code, headers, answer.text.replace(WORD, NOWHERE)


def _get(api: Api, path: str) -> httpx.Response:
    return api.send("GET", path, authorization="Bearer part", accept_encoding="identity")


@pytest.mark.timeout(600)
def test_no_answer_shows_a_word_of_a_hidden_group(api: Api) -> None:
    # ACC-78, ACC-79, ACC-80: if the request has the word, the response is the one for a word that no entity ever had
    position = int(api.send("GET", "/-/log/head", authorization="Bearer root").headers["annals-position"])
    statuses: dict[str, int] = {}
    values = _values(api)
    for route in get_routes(api, "Bearer part"):
        for path, query in product(route.paths(values), route.queries(QUERIES)):
            url = f"{path}?{query.replace('{}', str(position))}" if query else path
            if url in statuses:
                continue
            answer = _get(api, url)
            statuses[url] = answer.status_code
            assert answer.status_code < 500, url
            if WORD in url:
                assert _seen(answer) == _seen(_get(api, url.replace(WORD, NOWHERE))), url
            else:
                assert WORD not in f"{answer.headers}{answer.text}".lower(), url
    found = [url for url, status in statuses.items() if status == 200]
    assert len(found) > 300, found
    assert BASE not in found
