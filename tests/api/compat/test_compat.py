"""The two legacy APIs in the whole application: hosts, public URLs, concurrent writes, and immutable registries."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from annals.api.settings.settings import Settings
from annals.domain.compat.legacy_apis import MESSAGECATALOG, SCHEMAREGISTRY
from annals.domain.model.builtin import default_source
from tests.support.registries.in_process import BASE, Api, create, serving

SR, MC = SCHEMAREGISTRY.base, MESSAGECATALOG.base
SCHEMA = f"{SR}/schemagroups/g/schemas/s"
MESSAGE = f"{MC}/messagecatalog/g/messagedefinitions/m"


@pytest.fixture
def api(store_url: str) -> Iterator[Api]:
    """A registry with the built-in model, and a group in each legacy API."""
    create(store_url, default_source())
    with serving(store_url) as served:
        served.done("PUT", f"{SR}/schemagroups/g", {"format": "own"})
        served.done("PUT", f"{MC}/messagecatalog/g", {"format": "own"})
        yield served


def together(api: Api, path: str, bodies: list[bytes]) -> list[Any]:
    """The responses to concurrent POSTs."""

    async def post_all() -> list[Any]:
        return await asyncio.gather(*(api.client.post(path, content=body) for body in bodies))

    return api.runner.run(post_all())


@pytest.mark.parametrize("uri", ["%00", "http://127.0.0.1/%00", "a%00"])
def test_no_version_has_a_uri_with_nul(api: Api, uri: str) -> None:
    # LEG-606: also where the database cannot be asked for it
    for path in (f"{SR}/schema", f"{MC}/messagedefinition"):
        assert api.send("GET", f"{path}?uri={uri}").status_code in (400, 404)


def test_the_same_content_at_once_is_one_version(api: Api) -> None:
    # LEG-534: for schemas; each POST of a message definition creates its own version
    answers = together(api, SCHEMA, [b"a"] * 20)
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.headers["schema-version"] for answer in answers} == {"1"}
    assert len([answer for answer in answers if "xregistry-xregcorrelationid" in answer.headers]) == 1
    assert api.get(f"{SCHEMA}/versions") == [1]
    answers = together(api, MESSAGE, [b"a"] * 20)
    assert sorted(int(answer.headers["message-version"]) for answer in answers) == [*range(1, 21)]
    assert api.get(f"{MESSAGE}/versions") == [*range(1, 21)]


def test_different_content_at_once_is_numbered_without_gaps(api: Api) -> None:
    # LEG-534: each request succeeds and creates a version; the numbers are consecutive
    bodies = [b"%d" % number for number in range(20)]
    answers = together(api, SCHEMA, bodies)
    assert {answer.status_code for answer in answers} == {200}
    numbers = [answer.headers["schema-version"] for answer in answers]
    assert sorted(map(int, numbers)) == [*range(1, 21)]
    for number, body in zip(numbers, bodies, strict=True):
        assert api.send("GET", f"{SCHEMA}/versions/{number}").content == body


def test_a_weak_tag_never_matches(api: Api) -> None:
    # LEG-524: the error says why the tag does not match, although the schema is in this state
    api.done("POST", SCHEMA, b"a")
    tag = api.send("GET", SCHEMA).headers["etag"]
    refused = api.send("POST", SCHEMA, b"b", if_match=f"W/{tag}")
    assert (refused.status_code, refused.json()["args"]) == (
        412,
        {
            "name": "If-Match",
            "error_detail": "a weak entity tag (W/) never matches; proxies that compress responses make tags weak",
        },
    )
    api.done("POST", SCHEMA, b"b", if_match=tag)


def test_uris_are_those_of_the_public_url(api: Api, store_url: str) -> None:
    # LEG-106, LEG-604, LEG-607: regardless of the request's host, and after a change of the public URL
    api.send("POST", SCHEMA, b"a", host="192.0.2.1:99")
    uri = f"{BASE}{SCHEMA}/versions/1"
    assert api.send("GET", SCHEMA).headers["schema-id-location"].endswith(_quoted(uri))
    with serving(store_url, public_url="https://new.example", ids="later") as moved:
        shown = moved.send("GET", SCHEMA)
        assert shown.headers["schema-id-location"] == f"https://new.example{SR}/schema?uri={_quoted(uri)}"
        assert moved.send("GET", f"{SR}/schema?uri={_quoted(uri)}").content == b"a"
        # LEG-608: the lookup also finds the version by its path below the current public URL
        assert moved.send("GET", f"{SR}/schema?uri=https://new.example{SCHEMA}/versions/1").content == b"a"
        assert moved.send("GET", f"{SR}/schema?uri=https://other.example{SCHEMA}/versions/1").status_code == 404
        moved.done("POST", SCHEMA, b"b")
        assert moved.send("GET", f"{SR}/schema?uri=https://new.example{SCHEMA}/versions/2").content == b"b"


def test_without_a_public_url_answers_follow_the_host(sqlite_url: str) -> None:
    # LEG-106: links in responses use the request's host, stored URIs do not
    create(sqlite_url, default_source())
    with serving(sqlite_url, public_url=None, hosts="h, here.example") as api:
        api.done("PUT", f"{SR}/schemagroups/g", {"format": "own"}, host="here.example")
        answer = api.done("POST", SCHEMA, b"a", host="here.example")
        assert answer.headers["location"] == f"http://here.example{SCHEMA}/versions/1"
        found = api.send("GET", answer.headers["schema-id-location"].replace("http://here.example", ""))
        assert found.content == b"a"
        assert "here.example" not in found.headers["schema-id-location"].partition("?")[2]


def test_hosts_of_their_own(sqlite_url: str) -> None:
    # LEG-104: a host serves one legacy API at its root, also under its canonical path, and nothing else
    create(sqlite_url, default_source())
    hosts: dict[str, Any] = {
        "compat_schemaregistry_hosts": "schemas.example, old.example",
        "compat_messagecatalog_hosts": "m.example",
    }
    with serving(sqlite_url, public_url=None, **hosts) as api:
        at = {"host": "Schemas.example:8080"}
        created = api.done("PUT", "/schemagroups/g", {"format": "own"}, **at)
        assert api.send("GET", "/schemagroups", **at).json() == ["g"]
        assert api.send("GET", "/schemagroups", host="old.example").json() == ["g"]
        assert api.get("/schemagroups").keys() == {"g"}
        location = created.headers["location"]
        assert location == f"http://Schemas.example:8080{SR}/schemagroups/g"
        assert api.send("GET", location.removeprefix("http://Schemas.example:8080"), **at).json()["id"] == "g"
        for path in ("/", "/-/log", "/export", "/subscriptions", "/messagecatalog", f"{MC}/messagecatalog"):
            answer = api.send("GET", path, **at)
            assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json"), path
        assert api.send("GET", "/messagecatalog", host="m.example").json() == []
        assert api.send("GET", "/schemagroups", host="m.example").status_code == 404
        assert api.send("GET", "/openapi.json", host="m.example").json()["info"]["title"] == "Message Catalog"


@pytest.mark.parametrize("api_name", ["schemaregistry", "messagecatalog", "confluent"])
@pytest.mark.parametrize("path", ["/-/livez", "/-/readyz"])
def test_health_at_hosts_of_their_own(sqlite_url: str, api_name: str, path: str) -> None:
    # ACC-87: health paths answer under any name
    create(sqlite_url, default_source())
    hosts: dict[str, Any] = {f"compat_{api_name}_hosts": "own.example"}
    with serving(sqlite_url, public_url=None, **hosts) as api:
        assert api.send("GET", path, host="own.example").json()["status"] == "ok"


def test_a_registry_that_is_not_mutable_takes_nothing(sqlite_url: str) -> None:
    # LEG-1103: entities that the capabilities make immutable cannot be changed through the legacy APIs
    create(sqlite_url, default_source())
    with serving(sqlite_url) as api:
        api.done("PUT", f"{SR}/schemagroups/g", {"format": "own"})
        available = {"capabilities": {"mutable": True}, "entities": {"mutable": False}, "model": {"mutable": False}}
        api.done("PATCH", "/capabilities", {"available": available})
        for method, path in (("PUT", f"{SR}/schemagroups/g"), ("POST", SCHEMA), ("DELETE", f"{SR}/schemagroups/g")):
            answer = api.send(method, path, {"description": "a"})
            assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
        assert api.get(f"{SR}/schemagroups") == ["g"]


def test_a_model_without_the_types_has_nothing(sqlite_url: str) -> None:
    # LEG-101: both legacy APIs are served with any model
    create(sqlite_url)
    with serving(sqlite_url) as api:
        assert api.get(f"{SR}/schemagroups") == []
        for method, path in (("GET", f"{SR}/schemagroups/g"), ("PUT", f"{SR}/schemagroups/g"), ("POST", SCHEMA)):
            answer = api.send(method, path, {})
            assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
        assert api.send("GET", f"{SR}/schema?uri={SCHEMA}/versions/1").status_code == 404


def test_a_body_is_bounded_in_either_form(sqlite_url: str) -> None:
    # LEG-512, LEG-513: the limit applies to a body before and after decompression
    create(sqlite_url, default_source())
    with serving(sqlite_url, compat_body=1000) as api:
        api.done("PUT", f"{SR}/schemagroups/g", {"format": "own"})
        assert api.send("POST", SCHEMA, gzip.compress(b"a" * 1000), content_encoding="GZIP").status_code == 200
        assert api.send("POST", SCHEMA, gzip.compress(b"a" * 1001), content_encoding="gzip").status_code == 413
        assert api.send("POST", SCHEMA, b"a" * 1001).status_code == 413
        broken = gzip.compress(b"abc")
        for body in (broken[:-1], broken + b"x", b"", broken[:4]):
            assert api.send("POST", SCHEMA, body, content_encoding="gzip").status_code == 400, body
        assert api.get(f"{SCHEMA}/versions") == [1]
    with serving(sqlite_url, max_body=10) as api:
        assert api.send("POST", SCHEMA, b"a" * 11).status_code == 413


def test_requests_are_counted_by_themselves(api: Api) -> None:
    # metrics count requests to the legacy APIs separately, also under aliases
    api.get("/messagecatalog")
    text = api.send("GET", "/-/metrics").text
    catalog, schemas = "/compat/messagecatalog/v0.1/messagecatalog", "/compat/schemaregistry/v0.2/schemagroups"
    expected = {("GET", catalog, 200), ("PUT", f"{catalog}/{{group}}", 201), ("PUT", f"{schemas}/{{group}}", 201)}
    assert {line for line in text.splitlines() if line.startswith("annals_http_requests_total")} == {
        f'annals_http_requests_total{{method="{method}",route="{route}",status="{status}"}} 1.0'
        for method, route, status in expected
    }


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("compat_schemaregistry_hosts", "a b"),
        ("compat_messagecatalog_hosts", "http://a"),
        ("compat_confluent_hosts", "a/b"),
    ],
)
def test_hosts_have_names(sqlite_url: str, setting: str, value: str) -> None:
    # LEG-104: an application with an invalid host name in a setting does not start
    options: dict[str, Any] = {setting: value}
    with pytest.raises(ValueError, match="host name"):
        Api(sqlite_url, **options)


@pytest.mark.parametrize(
    ("first", "value", "second", "hosts"),
    [
        ("compat_schemaregistry_hosts", "a.example, B.example", "compat_messagecatalog_hosts", "b.example"),
        ("compat_schemaregistry_hosts", "[2001:DB8::1]", "compat_confluent_hosts", "[2001:db8::1]"),
        ("compat_messagecatalog_hosts", "a.example", "compat_confluent_hosts", "c.example,A.Example"),
        ("public_url", "https://Reg.example", "compat_schemaregistry_hosts", "reg.example"),
        ("public_url", "https://reg.example:8443/registry", "compat_messagecatalog_hosts", "REG.example"),
        ("public_url", "http://[2001:db8::1]:8080", "compat_confluent_hosts", "[2001:DB8::1]"),
    ],
)
def test_a_host_has_one_api(sqlite_url: str, first: str, value: str, second: str, hosts: str) -> None:
    # LEG-104: a host that would serve two APIs at its root is refused, and the error names both settings
    options: dict[str, Any] = {"public_url": None, first: value, second: hosts}
    with pytest.raises(ValidationError, match=f"is in ANNALS_{first.upper()} too") as refused:
        Settings(database=sqlite_url, **options)
    assert [error["loc"] for error in refused.value.errors()] == [(second,)]


def _quoted(uri: str) -> str:
    return uri.replace(":", "%3A").replace("/", "%2F")
