"""`/subscriptions` over the real application, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from annals.commands.store.log import Store
from tests.support.registries.in_process import BASE, Api, create, serving
from tests.support.subscribing import BODY, KEY, SINK, TOKENS, InMemoryDeliveries, bearer, create_subscription, refusal

PLAIN = {"credentialtype": "PLAIN", "identifier": "u", "secret": "swordfish"}


@pytest.fixture
def stored_deliveries() -> InMemoryDeliveries:
    return InMemoryDeliveries()


@pytest.fixture
def api(store_url: str, stored_deliveries: InMemoryDeliveries) -> Iterator[Api]:
    """A registry without authentication, with a master key."""
    create(store_url)
    with serving(store_url, ports={"deliveries": stored_deliveries}, master_key=KEY) as served:
        yield served


@pytest.fixture
def guarded(store_url: str) -> Iterator[Api]:
    """A registry with authentication."""
    create(store_url)
    with serving(store_url, tokens=TOKENS, master_key=KEY) as served:
        yield served


def recorded_actions(url: str) -> list[Any]:
    """The actions on subscriptions in the log, each with its position."""
    with closing(Store(url)) as store:
        return [event.private["action"] for _, event in store.events(0, 1000) if "action" in event.private]


def test_create_update_and_delete_a_subscription(api: Api) -> None:
    # SUB-501, SUB-507: a UUID, a location, one event; an id in the request is ignored
    answer = api.send("POST", "/subscriptions", {**BODY, "id": "mine"})
    assert answer.status_code == 201
    found = answer.json()
    assert len(found["id"]) == 36
    path = f"/subscriptions/{found['id']}"
    assert answer.headers["location"] == BASE + path
    assert answer.headers["xregistry-xregcorrelationid"] == "id1"
    assert api.get(path) == found and api.get("/subscriptions") == [found]
    # SUB-502: a full replacement
    replaced = api.done("PUT", path, {"sink": SINK, "protocol": "HTTP", "source": BASE})
    assert replaced.headers["xregistry-xregcorrelationid"] == "id2"
    assert "types" not in replaced.json() and api.get(path) == replaced.json()
    # SUB-504: a deletion returns the last representation
    gone = api.done("DELETE", path)
    assert gone.json() == {name: value for name, value in replaced.json().items() if name != "status"}
    assert refusal(api.send("GET", path)) == (404, "notfound", None)
    assert refusal(api.send("DELETE", path)) == (404, "notfound", None)
    assert api.get("/subscriptions") == []


def test_media_types(api: Api) -> None:
    # subscriptions 5: two media types, and 415 for others
    for type in ("application/json", "application/cloudevents-subscription+json; charset=utf-8"):
        assert api.send("POST", "/subscriptions", BODY, content_type=type).status_code == 201
    assert refusal(api.send("POST", "/subscriptions", BODY, content_type="text/plain"))[:2] == (
        415,
        "unsupportedmediatype",
    )
    assert refusal(api.send("POST", "/subscriptions", b"{")) == (400, "parsingdata", None)
    assert refusal(api.send("POST", "/subscriptions", b'{"a": 1, "a": 2}'))[0] == 400
    assert refusal(api.send("POST", "/subscriptions"))[:2] == (400, "missingbody")


def test_entity_tags(api: Api, stored_deliveries: InMemoryDeliveries) -> None:
    # SUB-841: the tag does not depend on the status; SUB-503: If-Match
    found = create_subscription(api)
    path = f"/subscriptions/{found['id']}"
    tag = api.send("GET", path).headers["etag"]
    stored_deliveries.state = {"state": "retrying"}
    again = api.send("GET", path)
    assert again.headers["etag"] == tag and again.json()["status"]["state"] == "retrying"
    assert api.send("GET", path, if_none_match=tag).status_code == 304
    weak = api.send("PUT", path, {**BODY, "types": ["a"]}, if_match=f"W/{tag}")
    assert weak.status_code == 412 and "a weak entity tag (W/) never matches" in weak.text
    assert api.send("PUT", path, {**BODY, "types": ["a"]}, if_match=tag).status_code == 200
    assert api.send("GET", path).headers["etag"] != tag
    assert refusal(api.send("PUT", path, BODY, if_match=tag))[:2] == (412, "preconditionfailed")
    assert refusal(api.send("DELETE", path, if_match=tag))[:2] == (412, "preconditionfailed")
    assert api.send("DELETE", path, if_match="*").status_code == 200


def test_what_a_get_gives_can_be_put(api: Api) -> None:
    # SUB-841, SUB-503: 200 and no event, although the representation leaves secrets out
    headers = {"headers": {"x-token": "swordfish"}}
    found = create_subscription(
        api, {"sink": SINK + "?k=swordfish", "sinkcredential": PLAIN, "protocolsettings": headers}
    )
    path = f"/subscriptions/{found['id']}"
    answer = api.send("PUT", path, api.get(path))
    assert answer.status_code == 200 and answer.json() == found
    assert "xregistry-xregcorrelationid" not in answer.headers
    assert found["sink"].endswith("?k=swordfish")  # SUB-917: its owner may see it
    assert "x-token" not in str(found) and "secret" not in found["sinkcredential"]


def test_ids_in_bodies(api: Api) -> None:
    # SUB-502: an id in the body has to be that of the path
    found = create_subscription(api)
    path = f"/subscriptions/{found['id']}"
    assert api.send("PUT", path, {**BODY, "id": found["id"]}).status_code == 200
    assert refusal(api.send("PUT", path, {**BODY, "id": "b"})) == (400, "idmismatch", "/id")
    assert refusal(api.send("PUT", "/subscriptions/b", BODY)) == (404, "notfound", None)


def test_the_offer(api: Api) -> None:
    # SUB-108, SUB-506: OPTIONS returns the protocols, dialects and settings that are offered, on both paths
    answer = api.send("OPTIONS", "/subscriptions")
    assert answer.status_code == 200 and answer.headers["allow"] == "GET, POST, OPTIONS"
    offer = answer.json()
    assert {"HTTP", "KAFKA"} <= offer["protocols"].keys()
    assert offer["dialects"] == ["exact", "prefix", "suffix", "all", "any", "not", "sql"]
    assert offer["config"].keys() == {"families", "startposition", "starttime"}
    assert offer["protocols"]["HTTP"]["protocolsettings"]["method"]["default"] == "POST"
    path = f"/subscriptions/{create_subscription(api)['id']}"
    modes = {name: each["protocolsettings"]["contentmode"]["values"] for name, each in offer["protocols"].items()}
    both = ["structured", "binary"]
    assert modes == {**dict.fromkeys(modes, both), "HTTP": [*both, "batched"], "MQTT3": ["structured"]}
    answer = api.send("OPTIONS", path)
    assert answer.json() == offer and answer.headers["allow"] == "GET, PUT, DELETE, OPTIONS"
    assert refusal(api.send("OPTIONS", "/subscriptions/nope"))[0] == 404


def test_head_and_other_methods(api: Api) -> None:
    # SUB-510: HEAD works; refusals of other methods list the methods that work
    path = f"/subscriptions/{create_subscription(api)['id']}"
    for each in ("/subscriptions", path):
        head = api.send("HEAD", each)
        assert head.status_code == 200 and head.content == b""
    answer = api.send("PATCH", path, {})
    assert refusal(answer)[:2] == (405, "actionnotsupported") and answer.headers["allow"] == "GET, PUT, DELETE, OPTIONS"
    assert refusal(api.send("DELETE", "/subscriptions"))[0] == 405
    for each in ("/subscriptions/a/b", "/subscriptions/a$details", "/subscriptions/a/actions/stop/now"):
        assert refusal(api.send("GET", each))[0] == 404


def test_a_preflight_goes_first(sqlite_url: str) -> None:
    # SUB-506: a preflight of a page from another origin gets the response of CORS
    create(sqlite_url)
    with serving(sqlite_url, cors_origins="https://page.example") as api:
        preflight = {"origin": "https://page.example", "access_control_request_method": "POST"}
        answer = api.send("OPTIONS", "/subscriptions", **preflight)
        assert answer.status_code == 204 and answer.headers["access-control-allow-origin"] == preflight["origin"]


def test_query(api: Api, stored_deliveries: InMemoryDeliveries) -> None:
    # SUB-505: in the order of creation, filtered and in pages
    create_subscription(api)
    create_subscription(api, {"source": BASE})
    create_subscription(api, {"sink": "SSL://93.184.216.34:9093", "protocol": "KAFKA"})
    ids = [each["id"] for each in api.get("/subscriptions")]
    assert [each["protocol"] for each in api.get("/subscriptions")] == ["HTTP", "HTTP", "KAFKA"]
    assert [each["id"] for each in api.get("/subscriptions?protocol=KAFKA")] == ids[2:]
    for source in (BASE, f"{BASE}/"):  # SUB-103
        assert [each["id"] for each in api.get(f"/subscriptions?source={source}")] == ids[1:2]
    assert [each["id"] for each in api.get("/subscriptions?state=active")] == ids
    assert api.get("/subscriptions?state=gone") == []
    refused = api.send("GET", "/subscriptions?state=foo")
    known = "active, paused, retrying, pendingvalidation, gone, suspended, unauthorized, credentialexpired"
    assert (refused.status_code, refused.json()["title"]) == (400, f'the parameter "state": it takes one of: {known}.')
    paths, seen = "/subscriptions?limit=2", list[str]()
    while paths:
        answer = api.send("GET", paths)
        seen += [each["id"] for each in answer.json()]
        paths = answer.links.get("next", {}).get("url", "").removeprefix(BASE)
    assert seen == ids
    assert refusal(api.send("GET", "/subscriptions?sort=id"))[0] == 400
    assert refusal(api.send("GET", "/subscriptions?limit=0"))[0] == 400


def test_the_past(api: Api) -> None:
    # SUB-507: the list as of any position
    first = create_subscription(api)
    path = f"/subscriptions/{first['id']}"
    api.done("PUT", path, {**BODY, "types": ["a"]})
    second = create_subscription(api)
    api.done("DELETE", path)
    bare = {name: value for name, value in first.items() if name != "status"}
    assert api.get("/subscriptions?asof=3") == []
    assert api.get("/subscriptions?asof=4") == [bare]
    assert api.get(f"{path}?asof=4") == bare
    assert api.get(f"{path}?asof=id2")["types"] == ["a"]
    assert [each["id"] for each in api.get("/subscriptions?asof=6")] == [first["id"], second["id"]]
    assert [each["id"] for each in api.get("/subscriptions?asof=7")] == [second["id"]]
    assert refusal(api.send("GET", f"{path}?asof=7"))[0] == 404
    assert refusal(api.send("GET", "/subscriptions?asof=99"))[0] == 400
    answer = api.send("GET", f"{path}?asof=4")
    assert answer.headers["memento-datetime"] and answer.links["original"]["url"] == BASE + path


def test_destroyed_queries_stay_gone(api: Api) -> None:
    # SUB-913: the past of a deleted subscription can be read, without its destroyed query
    path = f"/subscriptions/{create_subscription(api, {'sink': SINK + '?k=swordfish'})['id']}"
    api.done("DELETE", path)
    assert api.get(f"{path}?asof=4")["sink"] == SINK


def test_dry_runs(api: Api) -> None:
    # FLAG-83: they return what would be recorded, and record nothing
    lines = api.done("POST", "/subscriptions?dryrun", {**BODY, "sinkcredential": PLAIN})
    assert [each.get("topic") for each in lines.json()] == [None, "EntityCreated:1"]
    assert "swordfish" not in lines.text and api.get("/subscriptions") == []
    path = f"/subscriptions/{create_subscription(api)['id']}"
    for method, below, body in (
        ("PUT", "", {**BODY, "types": ["a"]}),
        ("DELETE", "", None),
        ("POST", "/actions/pause", None),
    ):
        assert len(api.done(method, f"{path}{below}?dryrun", body).json()) == 2
    assert "io.xregistry" in str(api.get(path)) and api.get(path)["status"]["state"] == "active"


def test_pause_and_resume(api: Api, stored_deliveries: InMemoryDeliveries) -> None:
    # SUB-509, SUB-833: 202 with the status, recorded once
    found = create_subscription(api)
    path = f"/subscriptions/{found['id']}"
    paused = api.send("POST", f"{path}/actions/pause")
    assert paused.status_code == 202 and paused.json()["state"] == "paused"
    assert "xregistry-xregcorrelationid" in paused.headers
    again = api.send("POST", f"{path}/actions/pause", {})
    assert again.status_code == 202 and "xregistry-xregcorrelationid" not in again.headers
    assert api.send("POST", f"{path}/actions/resume").json()["state"] == "active"
    stored_deliveries.state = {"state": "gone"}  # 8.3: the state lasts until an update or a resume
    assert "xregistry-xregcorrelationid" in api.send("POST", f"{path}/actions/resume").headers
    assert refusal(api.send("POST", f"{path}/actions/pause", {"a": 1})) == (400, "unknown", "/a")
    assert refusal(api.send("POST", f"{path}/actions/stop"))[0] == 404
    assert refusal(api.send("GET", f"{path}/actions/pause"))[0] == 405


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/fromposition"),
        ({"fromposition": 1, "fromtime": "2026-01-02T03:04:05Z"}, "/fromposition"),
        ({"fromposition": 99}, "/fromposition"),
        ({"fromposition": 1, "toposition": 99}, "/toposition"),
        ({"fromposition": "1"}, "/fromposition"),
        ({"fromtime": "2026-01-02T03:04:06Z"}, "/fromposition"),
        ({"fromtime": "now"}, "/fromtime"),
        ({"fromposition": 1, "parallel": 1}, "/parallel"),
    ],
)
def test_replays_that_cannot_be(guarded: Api, body: dict[str, Any], pointer: str) -> None:
    # SUB-834: a replay has exactly one start, within the log
    path = f"/subscriptions/{create_subscription(guarded, **bearer('ann'))['id']}"
    assert refusal(guarded.send("POST", f"{path}/actions/replay", body, **bearer("ann")))[2] == pointer


def test_replays(api: Api, store_url: str, stored_deliveries: InMemoryDeliveries) -> None:
    # SUB-507, SUB-834, SUB-835: a replay from a time is accepted and recorded; only one replay runs at a time
    path = f"/subscriptions/{create_subscription(api)['id']}"
    answer = api.send("POST", f"{path}/actions/replay", {"fromtime": "2026-01-02T03:04:05Z"})
    assert answer.status_code == 202
    stored_deliveries.running = True
    assert refusal(api.send("POST", f"{path}/actions/replay", {"fromposition": 1})) == (409, "replayrunning", None)
    assert recorded_actions(store_url) == [{"name": "replay", "from": 1, "to": 4, "position": 5}]


def test_dead_letters(api: Api, store_url: str, stored_deliveries: InMemoryDeliveries) -> None:
    # SUB-509, SUB-831: they are listed in pages, redelivered, discarded
    path = f"/subscriptions/{create_subscription(api)['id']}/deadletters"
    first, second, third = (f"{position:020}.00" for position in (1, 2, 3))
    stored_deliveries.by_sequence = {each: {"sequence": each, "reason": "rejected"} for each in (first, second, third)}
    page = api.send("GET", f"{path}?limit=2")
    assert [each["sequence"] for each in page.json()] == [first, second]
    assert [each["sequence"] for each in api.get(page.links["next"]["url"].removeprefix(BASE))] == [third]
    assert api.get(f"{path}/{second}") == stored_deliveries.by_sequence[second]
    answer = api.send("POST", f"{path}/{second}/redeliver")
    assert answer.status_code == 202 and stored_deliveries.done == [("redeliver", second)]
    assert api.done("DELETE", f"{path}/{third}").json() == {"sequence": third, "reason": "rejected"}
    assert refusal(api.send("DELETE", f"{path}/{third}"))[0] == 404
    assert refusal(api.send("POST", f"{path}/{third}/redeliver"))[0] == 404
    # SUB-507: what was done is recorded, what was refused is not; only administrators see the commands
    assert recorded_actions(store_url) == [
        {"name": "redeliver", "sequence": second, "position": 5},
        {"name": "discard", "sequence": third, "position": 6},
    ]
    assert [each["command"] for each in api.get("/-/interactions") if "Control" in each["command"]] == []


@pytest.mark.parametrize("after", ["newest", "1", f"{10**6:020}.00", f"{2**55:020}.99", "9" * 20 + ".00"])
def test_dead_letters_beyond_what_there_is(api: Api, after: str) -> None:
    # SUB-509, SUB-831: `after` has to be a sequence within the log of this registry; the refusal names the parameter
    answer = api.send("GET", f"/subscriptions/{create_subscription(api)['id']}/deadletters?after={after}")
    assert answer.status_code == 400
    assert answer.json()["args"]["error_detail"].startswith(f'the parameter "after": {after!r} is ')


def test_owners(guarded: Api) -> None:
    # SUB-911: only owners and administrators see a subscription; others get 404
    path = f"/subscriptions/{create_subscription(guarded, {'sink': SINK + '?k=v'}, **bearer('ann'))['id']}"
    assert guarded.send("GET", path, **bearer("bob")).status_code == 404
    assert guarded.send("GET", "/subscriptions", **bearer("bob")).json() == []
    for method, below, body in (
        ("PUT", "", BODY),
        ("DELETE", "", None),
        ("POST", "/actions/pause", None),
        ("GET", "/deadletters", None),
        ("OPTIONS", "", None),
    ):
        assert refusal(guarded.send(method, path + below, body, **bearer("bob")))[0] == 404, method
        # a condition does not reveal whether it has changed
        assert refusal(guarded.send(method, path + below, body, if_match='"9.o"', **bearer("bob")))[0] == 404
    seen = guarded.send("GET", path, **bearer("root")).json()
    assert seen["sink"] == SINK  # SUB-917: only the owner sees its query
    answer = guarded.send("PUT", path, seen, **bearer("root"))
    assert answer.status_code == 200 and "xregistry-xregcorrelationid" not in answer.headers
    assert guarded.send("GET", path, **bearer("ann")).json()["sink"] == SINK + "?k=v"
    assert guarded.send("DELETE", path, **bearer("root")).status_code == 200


def test_who_may_subscribe(guarded: Api) -> None:
    # Callers: writers of the registry or of a Group may subscribe; readers may only read; other callers are refused
    statuses = {
        token: guarded.send("POST", "/subscriptions", BODY, **bearer(token)).status_code
        for token in ("ann", "gina", "rita", "nemo", "nobody")
    }
    assert statuses == {"ann": 201, "gina": 201, "rita": 403, "nemo": 403, "nobody": 401}
    assert guarded.send("GET", "/subscriptions", **bearer("rita")).json() == []
    assert guarded.send("GET", "/subscriptions", **bearer("nemo")).status_code == 403
    assert len(guarded.send("GET", "/subscriptions", **bearer("gina")).json()) == 1


def test_quotas(sqlite_url: str) -> None:
    # SUB-912: 429, and 413 for a body that is too long
    create(sqlite_url)
    limits: dict[str, Any] = {"subscriptions_owned": 1, "subscriptions_filters": 2, "subscriptions_body": 2000}
    with serving(sqlite_url, **limits) as api:
        filters = [{"prefix": {"subject": "/a"}}] * 3
        assert refusal(api.send("POST", "/subscriptions", {**BODY, "filters": filters})) == (
            429,
            "quotaexceeded",
            "/filters",
        )
        create_subscription(api)
        assert refusal(api.send("POST", "/subscriptions", BODY)) == (429, "quotaexceeded", None)
        assert refusal(api.send("POST", "/subscriptions", b" " * 2001))[:2] == (413, "bodytoolarge")


def test_without_a_master_key(sqlite_url: str) -> None:
    # SUB-914: secrets are refused, everything else works
    create(sqlite_url)
    with serving(sqlite_url) as api:
        found = create_subscription(api)
        refused = api.send("POST", "/subscriptions", {**BODY, "sinkcredential": PLAIN})
        assert refusal(refused) == (400, "credentialsunavailable", "/sinkcredential/secret")
        assert "swordfish" not in refused.text
        answer = api.send("PUT", f"/subscriptions/{found['id']}", {**BODY, "sink": SINK + "?k=v"})
        assert refusal(answer) == (400, "credentialsunavailable", "/sink")


def test_a_key_that_was_lost(sqlite_url: str) -> None:
    # SUB-914: a sealed value is not returned, and an update that leaves it out keeps it
    create(sqlite_url)
    with serving(sqlite_url, master_key=KEY) as api:
        found = create_subscription(api, {"sink": SINK + "?k=v", "sinkcredential": PLAIN})
    path = f"/subscriptions/{found['id']}"
    with serving(sqlite_url, ids="more") as api:
        assert api.get(path)["sink"] == SINK
        assert "xregistry-xregcorrelationid" not in api.done("PUT", path, api.get(path)).headers
    with serving(sqlite_url, ids="again", master_key=KEY) as api:
        assert api.get(path)["sink"] == SINK + "?k=v"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"sink": "https://169.254.169.254/latest"}, "/sink"),
        ({"sink": "https://[::1]/"}, "/sink"),
        ({"sink": "https://localhost/"}, "/sink"),
        ({"sink": SINK.replace("/in", ":22/in")}, "/sink"),
        (
            {"protocolsettings": {"deadletter": {"mode": "sink", "uri": "https://10.0.0.1/d"}}},
            "/protocolsettings/deadletter/uri",
        ),
    ],
)
def test_addresses(guarded: Api, body: dict[str, Any], pointer: str) -> None:
    # SUB-901, SUB-903, SUB-904: refused with an error that names no address
    answer = guarded.send("POST", "/subscriptions", {**BODY, **body}, **bearer("ann"))
    assert refusal(answer) == (400, "sinkrefused", pointer)
    assert "127.0.0.1" not in answer.text and "10.0.0.1" not in answer.text


def test_consent(api: Api, stored_deliveries: InMemoryDeliveries) -> None:
    # SUB-714: only the right secret gives consent, and not by HEAD; the caller needs no token
    path = "/-/subscriptions/s1/consent"
    assert api.send("POST", f"{path}/right", webhook_allowed_rate="120").status_code == 200
    assert api.send("GET", f"{path}/wrong").status_code == 404
    assert api.send("HEAD", f"{path}/right").status_code == 404
    assert stored_deliveries.done == [("consent", "s1", "right", "120"), ("consent", "s1", "wrong", "None")]


@pytest.mark.parametrize(("rate", "granted"), [("*", "0"), ("0", "None"), ("00", "None"), ("-1", "None"), ("5", "5")])
def test_rates_of_callbacks(api: Api, stored_deliveries: InMemoryDeliveries, rate: str, granted: str) -> None:
    # SUB-713: 0 stands for unlimited, which only * asks for; without a rate, the requested one counts
    api.send("POST", "/-/subscriptions/s1/consent/right", webhook_allowed_rate=rate)
    assert stored_deliveries.done == [("consent", "s1", "right", granted)]
