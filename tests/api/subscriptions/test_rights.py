"""Which events a subscription may receive, and which protocols a server offers."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from annals.api.auth.callers import Authenticator
from annals.api.auth.tokens import FixedTokenVerifier, parse_fixed_tokens
from annals.api.subscriptions.owner_rights import CACHE_SECONDS, CACHE_SIZE, OwnerRights
from annals.domain.subscriptions.subscription import Subscription
from annals.projections.access.stored_access import FRESH_SECONDS, StoredAccess
from annals.projections.entities.view_pool import ViewPool
from tests.api.access.conftest import access_api
from tests.api.auth.test_jwt import KEY, jwk, token
from tests.api.subscriptions.test_deliveries import delivering
from tests.support.polling import until
from tests.support.registries.in_process import Api, create
from tests.support.serving import ROOT
from tests.support.subscribing import BODY, TOKENS, bearer, create_subscription
from tests.support.webhooks import Webhooks, webhooks

AUTHENTICATOR = Authenticator([FixedTokenVerifier(lambda: parse_fixed_tokens(TOKENS))])


def stored(owner: str, authenticator: str = "", groups: tuple[str, ...] | None = None, **more: Any) -> Subscription:
    """A subscription with the members that determine rights."""
    some: dict[str, Any] = {"id": f"{owner}'s", "position": 1, "attributes": {}, "is_paused": False, **more}
    return Subscription(
        owner=owner, authenticator=authenticator, groups=groups, since=1, first_position=1, epoch=1, **some
    )


def entry(token: str) -> str:
    """What a subscription has of the entry of a fixed token."""
    return sha256(sha256(token.encode()).hexdigest().encode()).hexdigest()[:32]


def test_owners_read_everything_without_authentication() -> None:
    # SUB-911: without authentication, any owner may read everything
    assert OwnerRights(Authenticator())(stored("anonymous"), "/dirs/d1")


@pytest.mark.parametrize("authenticator", ["tokens", "", "session"])
def test_listed_callers(authenticator: str) -> None:
    # SUB-911: callers in a list have their current roles, not those at the write of the subscription
    rights = OwnerRights(AUTHENTICATOR)
    rita, gina, nemo, gone = (
        stored(name, authenticator, entry=entry(name)) for name in ("rita", "gina", "nemo", "gone")
    )
    assert rights(rita, "/dirs/d1") and rights(gina, "/dirs/d1/files/f") and rights(stored("console"), "/")
    assert not rights(gina, "/dirs/d2") and not rights(nemo, "/dirs/d1") and not rights(gone, "/dirs/d1")
    # ACC-73: the model and the capabilities are for all with a role; the registry's own events are not
    for xid in ("/model", "/capabilities"):
        assert rights(gina, xid) and not rights(nemo, xid) and not rights(gone, xid)
    assert not rights(gina, "/")


@pytest.mark.parametrize(
    ("authenticator", "groups", "readable"),
    [
        # its own list decides alone, also if it allows more now
        ("tokens", ("/dirs/d2",), {"/dirs/d1"}),
        # what both the stored rights and the list allow, because the credential may have allowed less than the list
        ("jwt", ("/dirs/d*",), {"/dirs/d1"}),
        ("session", ("/dirs/d2",), set()),
        ("", None, {"/dirs/d1"}),
        # no list has passwords of that name
        ("basic", None, set()),
    ],
)
def test_a_name_in_a_list(authenticator: str, groups: tuple[str, ...] | None, readable: set[str]) -> None:
    # SUB-911, ACC-13: the same name is the same caller; the roles are those of the credential
    rights = OwnerRights(AUTHENTICATOR, has_issued_tokens=True)
    subscription = stored("gina", authenticator, groups, entry=entry("gina"))
    assert {xid for xid in ("/dirs/d1", "/dirs/d2") if rights(subscription, xid)} == readable


WIDE: Final = {"name": "ci", "role": "reader"}
NARROW: Final = {"name": "ci", "groups": {"/dirs/d1": "writer"}}


@pytest.mark.parametrize(
    ("tokens", "readable"),
    [
        ({"wide": WIDE, "narrow": NARROW}, {"/dirs/d1"}),
        ({"narrow": WIDE, "wide": NARROW}, {"/dirs/d1", "/dirs/d2"}),
        # Another token of the same name has replaced it: what both allow.
        ({"wide": WIDE}, {"/dirs/d1"}),
        ({"new": {"name": "ci", "groups": {"/dirs/d2": "writer"}}}, set()),
        ({"new": NARROW | {"name": "other"}}, set()),
    ],
)
def test_another_token_of_the_same_name_gives_nothing(
    sqlite_url: str, tokens: dict[str, Any], readable: set[str]
) -> None:
    # SUB-911, ACC-13: what counts is the credential that wrote the subscription, not every one with its name
    first = {"narrow": NARROW, "wide": WIDE}
    with access_api(sqlite_url, tokens=json.dumps(first)) as api, closing(ViewPool(sqlite_url)) as readers:
        headers = {"content-type": "application/json", **bearer("narrow")}
        assert api.runner.run(api.client.post("/subscriptions", json=BODY, headers=headers)).status_code == 201
        (stored_entry,) = readers.quick_view().subscriptions.all()
    rights = OwnerRights(Authenticator([FixedTokenVerifier(lambda: parse_fixed_tokens(json.dumps(tokens)))]))
    assert {xid for xid in ("/dirs/d1", "/dirs/d2") if rights(stored_entry.subscription, xid)} == readable


@pytest.mark.parametrize(
    ("tokens", "readable"),
    [
        ({"wide": WIDE}, {"/dirs/d1", "/dirs/d2"}),
        ({"wide": WIDE, "narrow": NARROW}, {"/dirs/d1"}),
    ],
)
def test_a_subscription_of_an_older_release(tokens: dict[str, Any], readable: set[str]) -> None:
    # SUB-911: it does not say which token of the name wrote it; of several, it gets what both allow
    rights = OwnerRights(Authenticator([FixedTokenVerifier(lambda: parse_fixed_tokens(json.dumps(tokens)))]))
    subscription = stored("ci", "tokens", ("/dirs/d1",))
    assert {xid for xid in ("/dirs/d1", "/dirs/d2") if rights(subscription, xid)} == readable


def test_callers_that_an_issuer_vouches_for() -> None:
    # SUB-911, ACC-60: they may read what they could read when they last wrote the subscription, patterns included
    rights = OwnerRights(AUTHENTICATOR, has_issued_tokens=True)
    assert rights(stored("jo", "jwt"), "/dirs/d1")
    narrow = stored("jo", "jwt", ("/dirs/pay-*", "/dirs/d2"), id="narrow")
    assert rights(narrow, "/dirs/pay-eu/files/f") and rights(narrow, "/dirs/D2") and not rights(narrow, "/dirs/d1")
    assert not rights(stored("jo", "jwt", (), id="narrow", position=2), "/dirs/d2")


def test_rights_are_looked_at_again(store_url: str) -> None:
    # SUB-911, ACC-65: a grant to a name, a claim or anyone adds to the stored rights of a JWT, until it is deleted
    times = count()
    with access_api(store_url) as api, closing(ViewPool(store_url)) as readers:
        access = StoredAccess(clock=lambda: next(times) * FRESH_SECONDS)
        access.open(readers)
        rights = OwnerRights(Authenticator(access=access), True, clock=lambda: next(times) * CACHE_SECONDS)
        subscription = stored("jo", "jwt", ("/dirs/d1",), claims=("pay",))
        assert rights(subscription, "/dirs/d1") and not rights(subscription, "/dirs/d2")
        for subject in ("caller:jo", "claim:pay", "anyone"):
            grant = api.send("POST", "/-/grants", {"subject": subject, "role": "reader", "at": "/dirs/d2"}).json()
            assert rights(subscription, "/dirs/d2") and not rights(subscription, "/dirs/d3")
            api.send("DELETE", f"/-/grants/{grant['id']}")
            assert rights(subscription, "/dirs/d1") and not rights(subscription, "/dirs/d2")


def test_rights_of_many_subscriptions_are_not_kept() -> None:
    # SUB-911: they are found again for a subscription after those of many others, which may be deleted ones
    found: list[str] = []

    class Recorder(Authenticator):
        def callers_named(self, name: str, authenticator: str = "") -> Any:
            found.append(name)
            return super().callers_named(name, authenticator)

    rights = OwnerRights(Recorder([FixedTokenVerifier(lambda: parse_fixed_tokens(TOKENS))]), clock=lambda: 7.0)
    for number in (*range(CACHE_SIZE), CACHE_SIZE - 1, CACHE_SIZE, 0):
        rights(stored("rita", id=str(number)), "/dirs/d1")
    assert len(found) == CACHE_SIZE + 2


def test_a_subscription_keeps_the_rights_of_its_credential(sqlite_url: str, tmp_path: Path) -> None:
    # SUB-911, ACC-61: but not those of grants, which may be deleted; only the claims by which grants are found
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [jwk(KEY)]}))
    options = {"jwt_keys": str(tmp_path / "jwks.json"), "jwt_issuer": "i", "jwt_audience": "a"}
    with access_api(sqlite_url, **options) as api, closing(ViewPool(sqlite_url)) as readers:
        api.send("POST", "/-/grants", {"subject": "claim:pay", "role": "writer", "at": "/schemagroups/pay"})
        headers = {"content-type": "application/json", **bearer(token(role=..., groups=["pay"]))}
        request = api.client.post("/subscriptions", json=BODY, headers=headers)
        assert api.runner.run(request).status_code == 201
        (entry,) = readers.quick_view().subscriptions.all()
    subscription = entry.subscription
    assert (subscription.groups, subscription.claims, subscription.authenticator) == ((), ("pay",), "jwt")


def test_a_subscription_of_a_session_ends_with_its_credential(sqlite_url: str, tmp_path: Path) -> None:
    # SUB-911, ACC-59: also where callers may have credentials that nothing lists
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [jwk(KEY)]}))
    options = {"jwt_keys": str(tmp_path / "jwks.json"), "jwt_issuer": "i", "jwt_audience": "a"}
    with access_api(sqlite_url, **options) as api, closing(ViewPool(sqlite_url)) as readers:
        api.runner.run(api.client.post("/ui/login", data={"token": "writer"}))
        answer = api.runner.run(api.client.post("/subscriptions", json=BODY, headers={"sec-fetch-site": "same-origin"}))
        assert answer.status_code == 201, answer.text
        (entry,) = readers.quick_view().subscriptions.all()
        assert (entry.subscription.owner, entry.subscription.authenticator) == ("wim", "tokens")


def test_sinks_get_what_their_owners_may_read_now(sqlite_url: str) -> None:
    # SUB-911, ACC-60: places with wildcards count, and a grant from its creation to its deletion
    create(sqlite_url)
    tokens = {"gina": {"name": "gina", "groups": {"/dirs/pay-*": "writer"}}, "root": {"name": "root", "role": "admin"}}
    with webhooks() as sinks, delivering(sqlite_url, tokens=json.dumps(tokens)) as api:
        wish = {"protocol": "HTTP", "sink": f"{sinks.url}/gina", "types": ["io.xregistry.group.created"]}
        create_subscription(api, wish, **bearer("gina"))
        numbers = count()

        def is_delivered(prefix: str) -> bool:
            path = f"/dirs/{prefix}-{next(numbers)}"
            last = f"/dirs/pay-{next(numbers)}"
            for written in (path, last):
                api.done("PUT", written, {}, **bearer("root"))
            until(lambda: last in sinks.subjects("/gina"))
            return path in sinks.subjects("/gina")

        assert is_delivered("pay") and not is_delivered("hr")
        grant = {"subject": "caller:gina", "role": "reader", "at": "/dirs/hr-*"}
        id = api.done("POST", "/-/grants", grant, **bearer("root")).json()["id"]
        until(lambda: is_delivered("hr"))
        api.done("DELETE", f"/-/grants/{id}", **bearer("root"))
        until(lambda: not is_delivered("hr"))


def test_sinks_and_previews_have_the_events_of_the_feed(sqlite_url: str) -> None:
    # SUB-911, ACC-73, ACC-74: for a caller with roles at some places, model and capabilities among them
    create(sqlite_url)
    with webhooks() as sinks, delivering(sqlite_url, tokens=TOKENS) as api:
        _write_everywhere(api)
        everything = _feed_subjects(api, "root")
        visible = [each for each in everything if each != "/" and not each.startswith("/dirs/d2")]
        assert {"/model", "/modelsource", "/capabilities", "/dirs/d1"} < set(visible)
        for name, subjects in (("root", everything), ("gina", visible)):
            assert _feed_subjects(api, name) == subjects
            _check_subscription(api, sinks, name, subjects)
            assert api.done("POST", "/-/subscriptions/preview", {}, **bearer(name)).json()["matched"] == len(subjects)


def _check_subscription(api: Api, sinks: Webhooks, name: str, subjects: list[str]) -> None:
    """Checks what a new subscription from the start of the log gets, and its list of attempts."""
    wish = {"protocol": "HTTP", "sink": f"{sinks.url}/{name}", "config": {"startposition": "earliest"}}
    headers = {"content_type": "application/json", **bearer(name)}
    id = api.done("POST", "/subscriptions", wish, **headers).json()["id"]
    until(lambda: sorted(sinks.subjects(f"/{name}")) == sorted(subjects))
    until(lambda: _attempted_subjects(api, id, name) == sorted(subjects))


def _write_everywhere(api: Api) -> None:
    source = json.loads(api.done("GET", "/modelsource", **bearer("root")).text)
    source["groups"]["boxes"] = {"singular": "box"}
    api.done("PUT", "/modelsource", source, **bearer("root"))
    api.done("PATCH", "/capabilities", {"shortself": True}, **bearer("root"))
    api.done("PATCH", "/", {"name": "n"}, **bearer("root"))
    for group in ("d2", "d1"):
        api.done("PUT", f"/dirs/{group}/files/f", b"x", **bearer("root"))


def _feed_subjects(api: Api, name: str) -> list[str]:
    return [event["subject"] for event in api.done("GET", "/-/events", **bearer(name)).json()]


def _attempted_subjects(api: Api, id: str, name: str) -> list[str]:
    attempts = api.done("GET", f"/subscriptions/{id}/attempts", **bearer(name)).json()["attempts"]
    return sorted(each.get("subject", "") for each in attempts)


def test_protocols_without_their_clients() -> None:
    # SUB-202: a protocol whose client is not installed is not offered, and the code starts without it
    blocked = "import sys; sys.modules.update(dict.fromkeys(('paho', 'nats', 'proton')));"
    script = f"{blocked} from api.subscriptions.config import available_protocols as offered; print(*offered())"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["HTTP", "KAFKA"], done.stderr
