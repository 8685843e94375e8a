"""`/-/links`: creating, changing and controlling replication links, by administrators only (LEG-901)."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

import pytest

from annals.commands.store.database.migrations import SCHEMAS_WITHOUT_IDS
from annals.commands.store.log import Store
from annals.domain.decisions.commands import WriteMethod, WriteTree
from annals.domain.decisions.world import Decision
from annals.domain.registry.events import EntityCreated
from annals.domain.replication.link import COLLECTION, TYPE
from annals.domain.replication.link_document import parse_link
from tests.api.subscriptions.test_secrets import all_stored_rows
from tests.support.polling import until
from tests.support.registries.in_process import BASE, Api, create, serving
from tests.support.subscribing import KEY, TOKENS, bearer

MARK: Final = "swordfish"
URL: Final = "https://primary.example/r"
BODY: Final[dict[str, Any]] = {"id": "p", "url": f"{URL}/"}
ROOT: Final = bearer("root")
#: The representation of a link that was created with nothing but an id and a URL.
DEFAULTS: Final[dict[str, Any]] = {
    "id": "p",
    "url": URL,
    "dialect": "log",
    "mode": "pull",
    "scope": {},
    "names": {},
    "interval": 60,
    "conflicts": "rename",
    "enabled": True,
    "status": {"state": "active", "position": 0, "verdict": "unknown"},
}


@pytest.fixture
def api(store_url: str) -> Iterator[Api]:
    create(store_url)
    with serving(store_url, tokens=TOKENS, master_key=KEY) as served:
        yield served


def test_an_id_copies_from_one_source_for_good(api: Api) -> None:
    # LEG-909: copies of a removed link may still have its id; other kinds of links look at no such mark
    pull = {**BODY, "dialect": "xregistry"}
    others = [{**BODY, "url": "https://other.example"}, {**pull, "url": "https://other.example", "mode": "push"}]
    api.done("POST", "/-/links", pull, **ROOT)
    for other in others:
        assert api.send("DELETE", "/-/links/p", **ROOT).status_code == 204
        api.done("POST", "/-/links", other, **ROOT)
    assert api.send("DELETE", "/-/links/p", **ROOT).status_code == 204
    refused = api.send("POST", "/-/links", {**pull, "url": "https://other.example"}, **ROOT)
    assert (refused.status_code, refused.json()["code"], refused.json()["pointer"]) == (400, "taken", "/id")
    assert api.send("POST", "/-/links", pull, **ROOT).status_code == 201


def test_create_update_and_delete_a_link(api: Api) -> None:
    # LEG-901: links are created, read, replaced and deleted, each time as one interaction; the same again is none
    made = api.send("POST", "/-/links", BODY, **ROOT)
    assert (made.status_code, made.json()) == (201, DEFAULTS)
    assert made.headers["location"] == f"{BASE}/-/links/p" and made.headers["xregistry-xregcorrelationid"] == "id1"
    assert api.done("GET", "/-/links", **ROOT).json() == [DEFAULTS]
    again = api.done("PUT", "/-/links/p", BODY, **ROOT)
    assert (again.status_code, again.json()) == (200, DEFAULTS)
    assert "xregistry-xregcorrelationid" not in again.headers
    changed = api.done("PUT", "/-/links/p", {**BODY, "interval": 5}, **ROOT)
    assert changed.json() == {**DEFAULTS, "interval": 5}
    assert api.done("GET", "/-/links/p", **ROOT).json() == {**DEFAULTS, "interval": 5}
    assert api.send("DELETE", "/-/links/p", **ROOT).status_code == 204
    assert api.send("GET", "/-/links/p", **ROOT).status_code == 404
    assert api.done("PUT", "/-/links/p", BODY, **ROOT).status_code == 201


def test_a_thousand_links(store_url: str) -> None:
    # LEG-901, PAG-7: pages by id, each link once, also of a list without a limit
    create(store_url)
    store = Store(store_url, new_id=lambda: "many")
    attributes = parse_link({**BODY, "enabled": False}).attributes
    with store.writing() as tx:
        context = tx.context()
        facts = {"xregcorrelationid": context.xregcorrelationid, "time": context.now}
        made = tuple(
            EntityCreated(xid=f"{COLLECTION}/l{n}", type=TYPE, revision=1, epoch=1, attributes=attributes, **facts)
            for n in range(1001)
        )
        tx.append(Decision(made, {}), context, WriteTree("/", {}, WriteMethod.PUT))
    store.close()
    with serving(store_url, tokens=TOKENS, master_key=KEY) as api:
        for query, sizes in (("", [1000, 1]), ("?limit=400", [400, 400, 201])):
            pages, url = list[list[str]](), f"/-/links{query}"
            while url:
                answer = api.done("GET", url, **ROOT)
                pages.append([link["id"] for link in answer.json()])
                url = answer.links["next"]["url"].removeprefix(BASE) if "next" in answer.links else ""
            assert [len(page) for page in pages] == sizes
            assert [id for page in pages for id in page] == sorted(f"l{n}" for n in range(1001))
        for bad in ("limit=0", "limit=1001", "after=%2F", "asof=1"):
            assert api.send("GET", f"/-/links?{bad}", **ROOT).status_code == 400


def test_actions_on_a_link(api: Api) -> None:
    # LEG-901, LEG-909: a link can be paused and resumed; after a promotion it cannot be resumed
    api.done("POST", "/-/links", BODY, **ROOT)

    def act(name: str) -> Any:
        return api.send("POST", f"/-/links/p/actions/{name}", **ROOT)

    rests = {**DEFAULTS, "enabled": False, "status": {**DEFAULTS["status"], "state": "resting"}}
    assert act("pause").json() == rests
    assert "xregistry-xregcorrelationid" not in act("pause").headers
    assert act("resume").json() == DEFAULTS
    assert api.send("PUT", "/dirs/d", {}, **ROOT).status_code == 400
    assert act("promote").json() == {**rests, "status": {**rests["status"], "state": "promoted"}}
    assert api.send("PUT", "/dirs/d", {}, **ROOT).status_code == 201
    assert (act("resume").status_code, act("resume").json()["code"]) == (400, "promoted")
    assert act("fly").status_code == 404
    assert api.send("POST", "/-/links/none/actions/pause", **ROOT).status_code == 404
    tried = api.send("POST", "/-/links/p/actions/repair?dryrun", **ROOT)
    assert tried.status_code == 400 and "dryrun" in tried.json()["title"]


WRONG: Final[tuple[tuple[str, str, dict[str, Any]], ...]] = (
    ("required", "/id", {"id": None}),
    ("required", "/id", {"id": "a/b"}),
    ("required", "/url", {"url": None}),
    ("value", "/url", {"url": "ftp://primary.example"}),
    ("value", "/url", {"url": f"https://user:{MARK}@primary.example"}),
    ("value", "/url", {"url": f"https://primary.example/?token={MARK}"}),
    ("plaintext", "/url", {"url": "http://primary.example", "credential": {"token": MARK}}),
    ("value", "/url", {"dialect": "kafka"}),
    ("value", "/dialect", {"dialect": "gossip"}),
    ("value", "/mode", {"dialect": "xregistry", "mode": "receive"}),
    ("unknown", "/colour", {"colour": "red"}),
    ("value", "/scope/groups/0", {"scope": {"groups": ["/dirs"]}}),
    ("value", "/scope/resources", {"scope": {"resources": ["/dirs/d/files/f"]}}),
    ("filter", "/scope/filters/0/like", {"scope": {"filters": [{"like": {"subject": "/dirs/d"}}]}}),
    ("value", "/names", {"names": {"/dirs/a": "/dirs/b"}}),
    ("value", "/names/~1dirs~1a", {"dialect": "xregistry", "names": {"/dirs/a": "/crates/a"}}),
    ("value", "/names/~1dirs~1b", {"dialect": "xregistry", "names": {"/dirs/a": "/dirs/q", "/dirs/b": "/dirs/Q"}}),
    ("required", "/credential/username", {"credential": {"type": "basic", "password": MARK}}),
    ("unknown", "/credential/password", {"credential": {"type": "bearer", "password": MARK}}),
)


@pytest.mark.parametrize(("code", "pointer", "members"), WRONG)
def test_invalid_links_are_refused(api: Api, code: str, pointer: str, members: dict[str, Any]) -> None:
    # LEG-901, SUB-306: the members of a link; a refusal names the member, shows no secret and records nothing
    body = {name: value for name, value in {**BODY, **members}.items() if value is not None}
    answer = api.send("POST", "/-/links", body, **ROOT)
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem["pointer"]) == (400, code, pointer), answer.text
    assert problem["type"] == f"{BASE}/-/docs#invalid_link"
    assert MARK not in answer.text
    assert api.done("GET", "/-/links", **ROOT).json() == []


OTHERS: Final[tuple[tuple[bool, dict[str, Any], dict[str, Any]], ...]] = (
    (False, {}, {"url": "https://other.example"}),
    (False, {"scope": {"groups": ["/dirs/a"]}}, {"url": "https://other.example"}),
    (False, {"scope": {"groups": ["/dirs/a"]}}, {"url": "https://other.example", "scope": {"groups": ["/dirs/A"]}}),
    (False, {"scope": {"groups": ["/dirs/a"]}}, {"scope": {"groups": ["/dirs/b"]}}),  # the same source
    (
        False,
        {"scope": {"filters": [{"prefix": {"subject": "/dirs/x"}}]}},
        {"url": "https://other.example", "scope": {"groups": ["/dirs/x1"]}},
    ),
    (True, {"scope": {"groups": ["/dirs/a"]}}, {"url": "https://other.example", "scope": {"groups": ["/dirs/b"]}}),
    (True, {}, {"url": "https://other.example", "mode": "push"}),
    (True, {}, {"url": "https://other.example", "dialect": "xregistry"}),
)


@pytest.mark.parametrize(("allowed", "first", "second"), OTHERS)
def test_overlapping_links_are_refused(api: Api, allowed: bool, first: dict[str, Any], second: dict[str, Any]) -> None:
    # LEG-903, LEG-909: only one link may pull an entity by the dialect `log`, so that the entity has one source
    api.done("POST", "/-/links", {**BODY, **first}, **ROOT)
    answer = api.send("POST", "/-/links", {**BODY, "id": "q", **second}, **ROOT)
    assert answer.status_code == (201 if allowed else 400), answer.text
    assert allowed or (answer.json()["code"], answer.json()["pointer"]) == ("overlap", "/scope")


def test_immutable_members_of_a_link(api: Api) -> None:
    # LEG-909: entities that a link has copied stay entities of its source, so the source cannot change
    api.done("POST", "/-/links", BODY, **ROOT)
    for name, value in {"url": "https://other.example", "dialect": "xregistry", "mode": "push"}.items():
        answer = api.send("PUT", "/-/links/p", {**BODY, name: value}, **ROOT)
        assert (answer.status_code, answer.json()["code"], answer.json()["pointer"]) == (400, "fixed", f"/{name}")
    taken = api.send("POST", "/-/links", BODY, **ROOT)
    assert (taken.status_code, taken.json()["code"]) == (400, "exists")
    assert api.send("PUT", "/-/links/p", {**BODY, "id": "q"}, **ROOT).json()["code"] == "idmismatch"


@pytest.mark.parametrize("token", ["ann", "rita", "gina", "nemo"])
def test_only_administrators(api: Api, token: str) -> None:
    # Callers: links, and their streams in the log, are for administrators
    api.done("POST", "/-/links", BODY, **ROOT)
    for method, path, body in (
        ("GET", "/-/links", None),
        ("GET", "/-/links/p", None),
        ("POST", "/-/links", {**BODY, "id": "q"}),
        ("PUT", "/-/links/p", BODY),
        ("DELETE", "/-/links/p", None),
        ("POST", "/-/links/p/actions/promote", None),
        ("POST", "/-/links/p/actions/repair", None),
    ):
        answer = api.send(method, path, body, **bearer(token))
        assert (answer.status_code, answer.json()["type"]) == (403, f"{BASE}/-/docs#forbidden"), (method, path)
    assert "/-/links" not in api.send("GET", "/-/log", **bearer(token)).text
    assert api.done("GET", "/-/links/p", **ROOT).json() == DEFAULTS
    assert api.send("GET", "/-/links").status_code == 401


def test_methods(api: Api) -> None:
    # HTTP: every path answers OPTIONS, and a method that it does not take with 405
    for path, methods in {
        "/-/links": "GET, HEAD, POST, OPTIONS",
        "/-/links/p": "GET, HEAD, PUT, DELETE, OPTIONS",
        "/-/links/p/actions/repair": "POST, OPTIONS",
    }.items():
        answer = api.send("OPTIONS", path, **ROOT)
        assert (answer.status_code, answer.headers["allow"]) == (204, methods)
        refused = api.send("PATCH", path, {}, **ROOT)
        assert (refused.status_code, refused.headers["allow"]) == (405, methods)


def test_a_dry_run_makes_nothing(api: Api) -> None:
    # FLAG-83: it returns the events that the write would record, and records nothing
    tried = api.send("POST", "/-/links?dryrun", BODY, **ROOT)
    assert tried.status_code == 200 and "/-/links/p" in tried.text
    assert api.done("GET", "/-/links", **ROOT).json() == []


@pytest.mark.parametrize(("method", "path"), [("DELETE", ""), ("POST", "/actions/promote")])
def test_missing_ids_are_assigned_when_a_link_ends(api: Api, store_url: str, method: str, path: str) -> None:
    # CSR-911: to copies of an older program, which the start of the server has left out; `test_schema_ids` has which
    api.done("POST", "/-/links", BODY, **ROOT)
    with closing(Store(store_url)) as store:
        with store.writing() as transaction:
            transaction.connection.exec_driver_sql(f"INSERT INTO store VALUES ('{SCHEMAS_WITHOUT_IDS}', '')")
        api.done(method, f"/-/links/p{path}", **ROOT)

        def are_missing() -> bool:
            with store.engine.connect() as connection:
                query = f"SELECT count(*) FROM store WHERE key = '{SCHEMAS_WITHOUT_IDS}'"
                return bool(connection.exec_driver_sql(query).scalar())

        until(lambda: not are_missing())


def test_links_have_a_history(api: Api) -> None:
    # LEG-901: links are domain objects with their own events, which administrators find in the history
    api.done("POST", "/-/links", BODY, **ROOT)
    api.done("POST", "/-/links/p/actions/pause", **ROOT)
    api.done("DELETE", "/-/links/p", **ROOT)
    found = api.done("GET", "/-/history/-/links/p", **ROOT).json()
    assert [(each["action"], each["changed"], each["caller"]) for each in found] == [
        ("created", [], "root"),
        ("updated", ["enabled"], "root"),
        ("deleted", [], "root"),
    ]
    head = api.done("GET", "/-/log/head", **ROOT).json()
    first = api.done("GET", "/-/log/head?asof=3", **ROOT).json()
    assert head["position"] == 6 and head["state"] == first["state"]  # no state hash covers links


def test_secrets_are_nowhere(api: Api, store_url: str, caplog: pytest.LogCaptureFixture) -> None:
    # LEG-901: secrets of links are sealed, as those of subscriptions are, and in no response or log line
    caplog.set_level(logging.DEBUG)
    credentials: tuple[dict[str, str], ...] = (
        {"token": f"{MARK}-token"},
        {"type": "basic", "username": "u", "password": f"{MARK}-password"},
        {"type": "basic", "username": "u", "password": f"{MARK}-other"},
    )
    responses = [
        api.done("PUT", path, {**BODY, "credential": credential}, **ROOT).text
        for credential in credentials
        for path in ("/-/links/p?dryrun", "/-/links/p")
    ]
    paths = ("/-/links", "/-/links/p", "/-/log", "/-/history/-/links/p?images=before,after", "/-/metrics")
    responses += [api.done("GET", path, **ROOT).text for path in paths]
    responses.append(api.send("POST", "/-/links/p/actions/check", **ROOT).text)
    rows = b"\n".join(row for _, row in all_stored_rows(store_url))
    assert not any(MARK in each for each in (*responses, caplog.text)) and MARK.encode() not in rows
    shown = api.done("GET", "/-/links/p", **ROOT).json()["credential"]
    assert shown == {"type": "basic", "username": "u"}
    assert sum(name == "secret" for name, _ in all_stored_rows(store_url)) == 1  # a replaced secret is destroyed
    api.done("DELETE", "/-/links/p", **ROOT)
    assert not any(name == "secret" for name, _ in all_stored_rows(store_url))


def test_without_a_master_key(store_url: str) -> None:
    # LEG-901: a secret that cannot be sealed is refused
    create(store_url)
    with serving(store_url, tokens=TOKENS) as api:
        answer = api.send("PUT", "/-/links/p", {**BODY, "credential": {"token": MARK}}, **ROOT)
        assert (answer.status_code, answer.json()["code"]) == (400, "credentialsunavailable")
        assert MARK not in answer.text
        assert api.done("PUT", "/-/links/p", BODY, **ROOT).status_code == 201


def test_links_in_the_metrics(api: Api) -> None:
    # Status: the state of each link is a metric; a value that is not known yet has no metric
    api.done("POST", "/-/links", BODY, **ROOT)
    api.done("POST", "/-/links/p/actions/pause", **ROOT)
    lines = [line for line in api.send("GET", "/-/metrics", **ROOT).text.splitlines() if line.startswith("annals_link")]
    states = {"active": 0, "resting": 1, "failing": 0, "diverged": 0, "promoted": 0}
    assert lines == [f'annals_link_state{{link="p",state="{name}"}} {value:.1f}' for name, value in states.items()]


def test_the_problems_are_explained(api: Api) -> None:
    # ERR-10: the OpenAPI document describes the problem types of links
    responses = json.loads(api.send("GET", "/-/openapi.json", **ROOT).text)["components"]["responses"]
    for name, status in {"invalid_link": 400, "diverged": 409, "remote_unavailable": 502}.items():
        assert name in responses[f"OwnProblem-{status}"]["description"]
