"""Who sees and does what through the two older APIs: the same rights as through the registry's own."""

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
    """A registry with the groups `open` and `shut`, each with `s`, by both APIs."""
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
    # LEG-1101, ACC-76: a role at the registry sees all Groups, one at a place those there
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


def test_groups_are_not_there_for_who_has_no_role(api: Api, family: LegacyApi) -> None:
    # LEG-1102: 403 on the list, 404 on what may not be read
    root = f"{family.base}/{family.path}"
    child = f"{root}/shut/{family.children}/s"
    asked = [("GET", path, None) for path in (root, f"{root}/shut", child, f"{root}/open", f"{root}/none")]
    assert statuses(api, "visitor", *asked) == [200, 404, 404, 200, 404]
    assert statuses(api, "nobody", *asked) == [403, 404, 404, 404, 404]
    told = [api.send("GET", f"{root}/{group}", **by("visitor")).json() for group in ("shut", "none")]
    assert [{**each, "title": "", "subject": "", "detail": "", "instance": "", "args": ""} for each in told] == [
        {"type": told[0]["type"], "status": 404, "title": "", "subject": "", "detail": "", "instance": "", "args": ""}
    ] * 2


def test_the_same_caller_may_do_the_same_everywhere(api: Api, family: LegacyApi) -> None:
    # LEG-1103: who may not write through the registry's own API may not here, and nothing is told of what is there
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
    # LEG-1104: what may not be read is not found by its URI, like what is not there
    lookup = f"{family.base}/{'schema' if family is SCHEMAREGISTRY else 'messagedefinition'}?uri=/{family.path}"
    asked = [("GET", f"{lookup}/{group}/{family.children}/s/versions/1", None) for group in ("open", "shut", "none")]
    assert statuses(api, "author", *asked) == [200, 404, 404]
    assert statuses(api, "visitor", *asked) == [200, 404, 404]
    assert statuses(api, "nobody", *asked) == [404, 404, 404]
    assert statuses(api, "reader", *asked) == [200, 200, 404]


def test_a_conflict_does_not_reveal_hidden_groups(api: Api, family: LegacyApi) -> None:
    # LEG-1104, LEG-606: that a URI is taken has to be told, but not by what
    root = f"{family.base}/{family.path}"
    api.done("POST", f"{root}/shut/{family.children}/hidden?id=urn:x:1", b"a", **by("admin"))
    for clash in (
        "id=urn:x:1",
        f"authority=http://h/r{family.base}&id={family.path}/shut/{family.children}/s/versions/1",
    ):
        answer = api.send("POST", f"{root}/open/{family.children}/t?{clash}", b"b", **by("author"))
        assert answer.status_code == 409
        told = answer.json()["title"] + answer.json()["detail"]
        assert "shut" not in told and "hidden" not in told


def test_a_read_only_definition_stays(api: Api, family: LegacyApi) -> None:
    # LEG-211: what the registry keeps from being written is a conflict here, whatever is asked of it
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
    # Callers: nobody known is challenged, in the words of these paths, by aliases too
    for path in (f"{family.base}/{family.path}", "/messagecatalog", "/schema?uri=a", "/messagecatalog/%ff"):
        answer = api.send("GET", path)
        assert answer.status_code in (400, 401)
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json().keys() >= {"type", "title", "status", "detail", "instance"}
        if answer.status_code == 401:
            assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_schema_that_may_not_be_read_is_none_to_a_definition(api: Api) -> None:
    # LEG-1103: a `dataschema` tells nothing of a schema that its author may not see
    uri = f"http://h/r{SR}/schemagroups/{{}}/schemas/s/versions/1"
    api.done("PUT", f"{MC}/messagecatalog/open", {"format": "own"}, **by("author"))
    api.done("DELETE", f"{MC}/messagecatalog/open/messagedefinitions", **by("author"))
    api.done("PUT", f"{MC}/messagecatalog/open", {"format": "CloudEvents"}, **by("author"))
    for group, known in (("open", True), ("shut", False)):
        document = {"attributes": {"type": group, "dataschema": uri.format(group)}}
        api.done("POST", f"{MC}/messagecatalog/open/messagedefinitions/{group}", document, **by("author"))
        shown = api.done("GET", f"/messagegroups/open/messages/{group}", **by("author")).json()
        assert ("dataschemaxid" in shown) == known
