"""Metrics for Prometheus."""

from __future__ import annotations

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from annals.api.compat.confluent.own_port import ConfluentPort
from annals.api.compat.confluent.paths import BASE
from annals.api.compat.confluent.routes import ROUTES
from tests.support.registries.in_process import Api


def figures(api: Api, path: str = "/-/metrics") -> dict[tuple[str, ...], float]:
    """Each sample by its name and the values of its labels."""
    answer = api.done("GET", path)
    assert answer.headers["content-type"].startswith("text/plain")
    samples = [sample for family in text_string_to_metric_families(answer.text) for sample in family.samples]
    return {(sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value for sample in samples}


def test_requests_commands_and_places(api: Api) -> None:
    api.done("PUT", "/dirs/d1", {})
    api.send("PUT", "/dirs/d1", {"epoch": 9})
    api.send("GET", "/dirs/none")
    api.send("BREW", "/-/coffee")
    found = figures(api)
    assert found["annals_http_requests_total", "PUT", "group", "201"] == 1
    assert found["annals_http_requests_total", "PUT", "group", "400"] == 1
    assert found["annals_http_requests_total", "GET", "group", "404"] == 1
    assert found["annals_http_requests_total", "other", "/-/", "404"] == 1
    assert found["annals_http_request_seconds_count", "PUT", "group"] == 2
    assert (found["annals_commands_total", "done"], found["annals_commands_total", "refused"]) == (1, 1)
    assert found["annals_commit_commands_count",] == found["annals_commit_seconds_count",] == 2
    head = api.get("/-/readyz")["head"]
    assert found["annals_log_position",] == found["annals_read_model_position",] == head
    assert head - 256 <= found["annals_attribute_index_position",] <= head


def test_labels_do_not_grow_with_what_clients_send(api: Api) -> None:
    names: list[set[tuple[str, ...]]] = []
    for n in range(20):
        for path in (f"/dirs/d{n}/files/f{n}", f"/nowhere{n}/{n}/{n}/{n}/{n}/{n}/{n}", f"/-/nothing{n}", f"/x{n}"):
            api.send("GET", path)
            api.send(f"METHOD{n}", path)
        for path in (
            f"/subjects/s{n}/versions",
            f"/contexts/.c{n}/subjects/s{n}/versions",
            f"/nothing{n}/{n}",
            f"/{n}",
        ):
            api.send("GET", BASE + path)
            api.send(f"METHOD{n}", BASE + path)
        for path in (f"/compat/schemaregistry/v0.2/schemagroups/g{n}/schemas/s{n}", f"/schema{n}", f"/compat/{n}"):
            api.send("GET", path)
            api.send(f"METHOD{n}", path)
        names.append(set(figures(api)))
    assert names[1] == names[-1]


#: Paths of the legacy APIs with the route that counts them; without one, they count as `compat`.
LEGACY = [
    ("/compat/schemaregistry/v0.2/schemagroups", "/compat/schemaregistry/v0.2/schemagroups"),
    ("/schema?uri=x", "/compat/schemaregistry/v0.2/schema"),
    (
        "/compat/schemaregistry/v0.2/schemagroups/g/schemas/s/versions/1",
        "/compat/schemaregistry/v0.2/schemagroups/{group}/schemas/{id}/versions/{number}",
    ),
    (
        "/compat/messagecatalog/v0.1/messagecatalog/g",
        "/compat/messagecatalog/v0.1/messagecatalog/{group}",
    ),
    (f"{BASE}/", BASE),
    (f"{BASE}/contexts/.c", f"{BASE}/contexts/{{context}}"),
    (f"{BASE}/contexts/.c/schemas/ids/1", f"{BASE}/schemas/ids/{{id}}"),
    (f"{BASE}/contexts/.c/v1/metadata/id", "compat"),
    (f"{BASE}/subjects/s/versions/1/nothing", "compat"),
    ("/compat/nothing/v0.2", "compat"),
]


@pytest.mark.parametrize(("path", "route"), LEGACY)
def test_requests_to_legacy_apis_count_by_their_routes(api: Api, path: str, route: str) -> None:
    status = str(api.send("GET", path).status_code)
    assert counted(api) == {("GET", route, status): 1}


@pytest.mark.parametrize("is_at_own_port", [False, True])
def test_each_route_of_confluents_api_counts_by_itself(api: Api, is_at_own_port: bool) -> None:
    # CSR-102: also at its own port; a context makes no other route
    registry = api.client
    if is_at_own_port:
        transport = httpx.ASGITransport(ConfluentPort(api.app, 8081))
        api.client = httpx.AsyncClient(transport=transport, base_url="http://h:8081")
    prefix = "" if is_at_own_port else BASE
    expected: dict[str, float] = {}
    for route in ROUTES:
        path = "/".join(segment.strip("{}") for segment in route.pattern.split("/"))
        for context in ("", "/contexts/.c") if route.in_context else ("",):
            api.send("OPTIONS", f"{prefix}{context}/{path}")
            template = f"{BASE}/{route.pattern}".rstrip("/")
            expected[template] = expected.get(template, 0) + 1
    api.client = registry
    assert counted(api) == {("OPTIONS", template, "204"): count for template, count in expected.items()}


def counted(api: Api) -> dict[tuple[str, ...], float]:
    """The numbers of requests by method, route and status."""
    return {key[1:]: value for key, value in figures(api).items() if key[0] == "annals_http_requests_total"}


def test_the_alias_gives_way_to_the_model(api: Api) -> None:
    # HTTP-4: a Group type of that name takes the path at the root, never the one below `/-/`
    figures(api, "/metrics")
    source = api.get("/modelsource")
    source["groups"]["metrics"] = {"singular": "metric"}
    api.done("PUT", "/modelsource", source)
    assert api.get("/metrics") == {}
    figures(api)
