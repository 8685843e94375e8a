"""A caller has the same rights in the two legacy APIs as in the xRegistry API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from annals.domain.compat.legacy_apis import MESSAGECATALOG, SCHEMAREGISTRY, LegacyApi
from annals.domain.model.builtin import default_source
from tests.support.registries.in_process import Api, create, serving

SR, MC = SCHEMAREGISTRY.base, MESSAGECATALOG.base
TOKENS = json.dumps(
    {
        "admin": {"name": "ada", "role": "admin"},
        "reader": {"name": "rob", "role": "reader"},
        "author": {"name": "wes", "groups": {"/schemagroups/open": "writer", "/messagegroups/open": "writer"}},
        "visitor": {"name": "vic", "groups": {"/schemagroups/open": "reader", "/messagegroups/open": "reader"}},
        "nobody": {"name": "nic"},
    }
)


def by(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.fixture(params=[SCHEMAREGISTRY, MESSAGECATALOG], ids=lambda family: family.name)
def family(request: pytest.FixtureRequest) -> LegacyApi:
    found: LegacyApi = request.param
    return found


@pytest.fixture
def api(store_url: str) -> Iterator[Api]:
    """A registry with the groups `open` and `shut` in both APIs, each with a definition `s`."""
    create(store_url, default_source())
    with serving(store_url, tokens=TOKENS) as served:
        for base, path, children in ((SR, "schemagroups", "schemas"), (MC, "messagecatalog", "messagedefinitions")):
            for group in ("open", "shut"):
                served.done("PUT", f"{base}/{path}/{group}", {"format": "own"}, **by("admin"))
                served.done("POST", f"{base}/{path}/{group}/{children}/s", b"a", **by("admin"))
        yield served


def statuses(api: Api, token: str, *requests: tuple[str, str, Any]) -> list[int]:
    return [api.send(method, path, body, **by(token)).status_code for method, path, body in requests]


def test_groups_are_listed_for_who_sees_them(api: Api, family: LegacyApi) -> None:
    # LEG-1101, ACC-76: a role for the registry sees all Groups; a role at a place sees the Groups there
    root = f"{family.base}/{family.path}"
    child = f"{root}/shut/{family.children}"
    below = [("GET", path, None) for path in (child, f"{child}/s", f"{child}/s/versions", f"{child}/s/versions/1")]
    nowhere = [("GET", f"{root}/none", None), ("GET", f"{root}/none/{family.children}", None)]
    for token in ("admin", "reader"):
        assert api.done("GET", root, **by(token)).json() == ["open", "shut"]
        assert statuses(api, token, *below) == [200] * 4
    position = api.send("GET", root, **by("admin")).headers["annals-position"]
    for token in ("author", "visitor"):
        for moment in ("", f"?asof={position}"):
            assert api.done("GET", f"{root}{moment}", **by(token)).json() == ["open"]
            page = api.done("GET", f"{root}{moment}{'&' if moment else '?'}limit=1", **by(token))
            assert page.json() == ["open"] and "next" not in page.links
        assert api.done("GET", f"{root}/open", **by(token)).json()["format"] == "own"
        assert statuses(api, token, ("GET", f"{root}/shut", None), *below) == [404] * 5
    assert statuses(api, "author", *nowhere) == [404, 404]


def test_groups_do_not_exist_for_callers_without_a_role(api: Api, family: LegacyApi) -> None:
    # LEG-1102: the list is 403, and an unreadable Group is 404
    root = f"{family.base}/{family.path}"
    child = f"{root}/shut/{family.children}/s"
    requests = [("GET", path, None) for path in (root, f"{root}/shut", child, f"{root}/open", f"{root}/none")]
    assert statuses(api, "visitor", *requests) == [200, 404, 404, 200, 404]
    assert statuses(api, "nobody", *requests) == [403, 404, 404, 404, 404]
    both = [api.send("GET", f"{root}/{group}", **by("visitor")).json() for group in ("shut", "none")]
    assert [{**each, "title": "", "subject": "", "detail": "", "instance": "", "args": ""} for each in both] == [
        {"type": both[0]["type"], "status": 404, "title": "", "subject": "", "detail": "", "instance": "", "args": ""}
    ] * 2


def test_the_same_caller_may_do_the_same_everywhere(api: Api, family: LegacyApi) -> None:
    # LEG-1103: writes need the same rights as in the xRegistry API, and a 403 does not reveal whether a Group exists
    root = f"{family.base}/{family.path}"
    for group in ("shut", "none"):
        writes = [
            ("PUT", f"{root}/{group}", {"format": "own"}),
            ("DELETE", f"{root}/{group}", None),
            ("POST", f"{root}/{group}/{family.children}/t", b"a"),
            ("DELETE", f"{root}/{group}/{family.children}", None),
            ("DELETE", f"{root}/{group}/{family.children}/s", None),
            ("DELETE", f"{root}/{group}/{family.children}/s/versions/1", None),
        ]
        for token in ("reader", "author", "visitor", "nobody"):
            assert statuses(api, token, *writes) == [403] * 6, token
    written = [("POST", f"{root}/open/{family.children}/t", b"a"), ("DELETE", f"{root}/open", None)]
    assert statuses(api, "reader", *written) == [403, 403]
    assert statuses(api, "author", *written) == [200, 204]


def test_uris_cannot_be_tried(api: Api, family: LegacyApi) -> None:
    # LEG-1104: a lookup of an unreadable version by its URI is 404, as if it did not exist
    lookup = f"{family.base}/{'schema' if family is SCHEMAREGISTRY else 'messagedefinition'}?uri=/{family.path}"
    requests = [("GET", f"{lookup}/{group}/{family.children}/s/versions/1", None) for group in ("open", "shut", "none")]
    assert statuses(api, "author", *requests) == [200, 404, 404]
    assert statuses(api, "visitor", *requests) == [200, 404, 404]
    assert statuses(api, "nobody", *requests) == [404, 404, 404]
    assert statuses(api, "reader", *requests) == [200, 200, 404]


def test_a_conflict_does_not_reveal_hidden_groups(api: Api, family: LegacyApi) -> None:
    # LEG-1104, LEG-606: the error reveals that a URI is in use, but not which version uses it
    root = f"{family.base}/{family.path}"
    api.done("POST", f"{root}/shut/{family.children}/hidden?id=urn:x:1", b"a", **by("admin"))
    for clash in (
        "id=urn:x:1",
        f"authority=http://h/r{family.base}&id={family.path}/shut/{family.children}/s/versions/1",
    ):
        answer = api.send("POST", f"{root}/open/{family.children}/t?{clash}", b"b", **by("author"))
        assert answer.status_code == 409
        message = answer.json()["title"] + answer.json()["detail"]
        assert "shut" not in message and "hidden" not in message


def test_a_read_only_definition_stays(api: Api, family: LegacyApi) -> None:
    # LEG-211: any write to a read-only definition is a conflict in the legacy APIs
    child = f"{family.base}/{family.path}/open/{family.children}/s"
    meta = f"/{family.groups}/open/{family.resources}/s/meta"
    assert api.done("PATCH", meta, {"readonly": True}, **by("admin")).json()["readonly"]
    before = api.done("GET", child, **by("author"))
    writes = [
        ("POST", child, b"b"),
        ("POST", f"{child}?id=urn:x:1", b"a"),
        ("DELETE", child, None),
        ("DELETE", f"{child}/versions/1", None),
        ("DELETE", f"{family.base}/{family.path}/open/{family.children}", None),
        ("DELETE", f"{family.base}/{family.path}/open", None),
    ]
    for token in ("author", "admin"):
        for method, path, body in writes:
            answer = api.send(method, path, body, **by(token))
            assert (answer.status_code, answer.json()["type"].partition("#")[2]) == (409, "conflict"), (method, path)
    after = api.done("GET", child, **by("author"))
    assert (after.content, after.headers["etag"]) == (before.content, before.headers["etag"])


def test_a_token_is_needed(api: Api, family: LegacyApi) -> None:
    # Callers: a request without a token gets a challenge in the error format of the legacy APIs, also under aliases
    for path in (f"{family.base}/{family.path}", "/messagecatalog", "/schema?uri=a", "/messagecatalog/%ff"):
        answer = api.send("GET", path)
        assert answer.status_code in (400, 401)
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json().keys() >= {"type", "title", "status", "detail", "instance"}
        if answer.status_code == 401:
            assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_schema_that_may_not_be_read_is_none_to_a_definition(api: Api) -> None:
    # LEG-1103: a `dataschema` does not reveal whether a schema exists that the author of the definition may not read
    uri = f"http://h/r{SR}/schemagroups/{{}}/schemas/s/versions/1"
    api.done("PUT", f"{MC}/messagecatalog/open", {"format": "own"}, **by("author"))
    api.done("DELETE", f"{MC}/messagecatalog/open/messagedefinitions", **by("author"))
    api.done("PUT", f"{MC}/messagecatalog/open", {"format": "CloudEvents"}, **by("author"))
    for group, known in (("open", True), ("shut", False)):
        document = {"attributes": {"type": group, "dataschema": uri.format(group)}}
        api.done("POST", f"{MC}/messagecatalog/open/messagedefinitions/{group}", document, **by("author"))
        shown = api.done("GET", f"/messagegroups/open/messages/{group}", **by("author")).json()
        assert ("dataschemaxid" in shown) == known
