"""Secrets reach only the sink: no response, row or log of a registry contains their markers."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import MetaData

from annals.api.subscriptions.secrets import StoredSecrets
from annals.commands.store.compression.state_compression import decompress_state
from annals.commands.store.log import Store
from annals.commands.store.secrets import Vault
from annals.projections.entities.view_pool import ViewPool
from tests.support.registries.in_process import Api, create, serving
from tests.support.subscribing import BODY, KEY, SINK, TOKENS, bearer, create_subscription

MARK = "swordfish"
SECRETS: dict[str, Any] = {
    "sink": f"{SINK}?token={MARK}-query",
    "sinkcredential": {
        "credentialtype": "REFRESHTOKEN",
        "accesstoken": f"{MARK}-access",
        "accesstokenexpiresutc": "2099-01-01T00:00:00Z",
        "refreshtoken": f"{MARK}-refresh",
        "refreshtokenendpoint": f"https://93.184.216.34/token?k={MARK}-endpoint",
    },
    "protocolsettings": {
        "headers": {"X-Api-Key": f"{MARK}-header", "X-Plain": "plain"},
        "deadletter": {"mode": "sink", "uri": f"https://93.184.216.34/dead?k={MARK}-dead"},
    },
}
#: Invalid members of a subscription, each with a secret.
WRONG: tuple[dict[str, Any], ...] = (
    {"sink": f"https://10.0.0.1/?t={MARK}"},
    {"sink": f"https://user:{MARK}@sink.example/"},
    {"sink": f"https://sink.example:{MARK}/"},
    {"sinkcredential": {"credentialtype": "PLAIN", "identifier": "u:v", "secret": MARK}},
    {"sinkcredential": {"credentialtype": "ACCESSTOKEN", "accesstoken": MARK, "accesstokenexpiresutc": "x"}},
    {"sinkcredential": {"credentialtype": "ACCESSTOKEN", "accesstoken": f"{MARK}\n"}},
    {"protocolsettings": {"headers": {"authorization": f"{MARK}\r\n"}}},
    {"protocolsettings": {"signingkey": f"whsec_{MARK}"}},
)


@pytest.fixture
def api(store_url: str) -> Iterator[Api]:
    create(store_url)
    with serving(store_url, tokens=TOKENS, master_key=KEY) as served:
        yield served


def all_stored_rows(url: str) -> Iterator[tuple[str, bytes]]:
    """Each row of each table, as bytes, with states of events decompressed."""
    with closing(Store(url)) as store, store.engine.begin() as connection:
        found = MetaData()
        found.reflect(connection)
        for table in found.sorted_tables:
            for row in connection.execute(table.select()):
                yield (
                    table.name,
                    b"|".join(
                        decompress_state(value) if isinstance(value, bytes | memoryview) else str(value).encode()
                        for value in row
                    ),
                )


def test_a_scan(api: Api, store_url: str, caplog: pytest.LogCaptureFixture) -> None:
    # SUB-916, SUB-303: no secret in responses, log lines, events, tables, exports and error texts
    caplog.set_level(logging.DEBUG)
    responses: list[str] = []

    def send(method: str, path: str, body: Any = None, token: str = "root", **headers: str) -> Any:
        answer = api.send(method, path, body, **bearer(token), **headers)
        responses.append(answer.text + str(answer.headers))
        return answer

    created = api.done("POST", "/subscriptions", {**BODY, **SECRETS}, **bearer("ann"))
    path = f"/subscriptions/{created.json()['id']}"
    send("POST", "/subscriptions?dryrun", {**BODY, **SECRETS}, "ann")
    changed = {**BODY, **SECRETS, "types": ["a"]}
    api.done("PUT", path, changed, **bearer("ann"))
    send("PUT", f"{path}?dryrun", changed, "ann")
    for body in WRONG:
        assert send("POST", "/subscriptions", {**BODY, **body}, "ann").status_code == 400, body
        assert send("PUT", path, {**BODY, **body}, "ann").status_code == 400, body
    assert (
        send(
            "PUT",
            path,
            {
                **SECRETS,
                **BODY,
                "sink": "https://93.184.216.35/",
                "sinkcredential": {
                    name: value
                    for name, value in SECRETS["sinkcredential"].items()
                    if "expires" in name or "type" in name
                }
                | {"refreshtokenendpoint": "https://93.184.216.34/token"},
            },
            "ann",
        ).status_code
        == 400
    )
    for each in (
        path,
        "/subscriptions",
        f"{path}?asof=4",
        "/-/log",
        "/-/events",
        "/export",
        "/-/interactions",
        "/-/metrics",
    ):
        assert send("GET", each).status_code == 200, each
    for each in (f"/-/history{path}?images=before,after", "/-/diff/?from=1", "/-/history/?below&images=after"):
        assert send("GET", each).status_code == 200, each
    send("OPTIONS", path)
    send("POST", f"{path}/actions/pause")
    assert [text for text in responses if MARK in text] == []
    kept = list(all_stored_rows(store_url))
    assert [name for name, row in kept if MARK.encode() in row] == []
    assert all(b'{"xid":"' in row for name, row in kept if name == "log")
    assert MARK not in caplog.text
    # the owner gets the queries of its own URIs, and no other secret (SUB-917)
    mine = api.send("GET", path, **bearer("ann")).text
    assert {
        word for word in ("query", "endpoint", "dead", "access", "refresh", "header") if f"{MARK}-{word}" in mine
    } == {
        "query",
        "endpoint",
        "dead",
    }


def test_headers_that_end_like_the_query_of_a_uri(api: Api) -> None:
    # SUB-915, SUB-505: the subscription and all lists can be read; an update without the header's value keeps it
    headers = {"X-Token.query": MARK, "X-Auth.Query": MARK}
    created = create_subscription(api, {"protocolsettings": {"headers": headers}}, **bearer("ann"))
    path = f"/subscriptions/{created['id']}"
    assert created["protocolsettings"]["headers"] == {}
    assert [each["id"] for each in api.done("GET", "/subscriptions", **bearer("ann")).json()] == [created["id"]]
    stored = api.done("GET", "/-/log/head", **bearer("root")).json()
    api.done("PUT", path, {**BODY, "protocolsettings": {"headers": {}}}, **bearer("ann"))
    assert api.done("GET", "/-/log/head", **bearer("root")).json() == stored, "nothing has changed"
    assert api.done("DELETE", path, **bearer("ann")).status_code in (200, 204)


def test_who_delivers_has_them(api: Api, store_url: str) -> None:
    # SUB-913, SUB-307: the deliverer gets secrets by name; a renewed secret replaces the old one without an event
    id = api.done("POST", "/subscriptions", {**BODY, **SECRETS}, **bearer("ann")).json()["id"]
    readers = ViewPool(store_url)
    with closing(Store(store_url, vault=Vault([bytes(32)]))) as store, closing(readers):
        subscription = readers.quick_view().subscriptions.get(id)
        assert subscription is not None
        secrets = StoredSecrets(store)
        assert secrets.reveal(subscription) == {
            "sinkcredential.accesstoken": f"{MARK}-access",
            "sinkcredential.refreshtoken": f"{MARK}-refresh",
            "sinkcredential.refreshtokenendpoint.query": f"k={MARK}-endpoint",
            "protocolsettings.headers.x-api-key": f"{MARK}-header",
            "protocolsettings.deadletter.uri.query": f"k={MARK}-dead",
            "sink.query": f"token={MARK}-query",
        }
        before = store.log_end().position
        secrets.replace(subscription, {"sinkcredential.accesstoken": "new", "sink.nothing": "x"})
        assert secrets.reveal(subscription)["sinkcredential.accesstoken"] == "new"
        assert store.log_end().position == before
        # SUB-504, SUB-914: after a deletion the secrets are gone, and a late renewal stores none
        api.done("DELETE", f"/subscriptions/{id}", **bearer("ann"))
        with pytest.raises(LookupError):
            secrets.reveal(subscription)
        secrets.replace(subscription, {"sinkcredential.accesstoken": "late"})
    assert [name for name, _ in all_stored_rows(store_url) if name == "secret"] == []
    assert json.loads(api.send("GET", "/-/log/head", **bearer("root")).text)["position"] == before + 1


def test_the_same_secret_again_is_no_event(api: Api, store_url: str) -> None:
    # SUB-503: a replacement by an equal secret records nothing, and stores no secret again
    id = api.done("POST", "/subscriptions", {**BODY, **SECRETS}, **bearer("ann")).json()["id"]
    before = [row for name, row in all_stored_rows(store_url) if name == "secret"]
    again = api.done("PUT", f"/subscriptions/{id}", {**BODY, **SECRETS}, **bearer("ann"))
    assert "xregistry-xregcorrelationid" not in again.headers
    assert len(before) == 6 and [row for name, row in all_stored_rows(store_url) if name == "secret"] == before
