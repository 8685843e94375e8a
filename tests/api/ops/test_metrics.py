"""Metrics for Prometheus."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

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
        names.append(set(figures(api)))
    assert names[1] == names[-1]


def test_the_alias_gives_way_to_the_model(api: Api) -> None:
    # HTTP-4: a Group type of that name takes the path at the root, never the one below `/-/`
    figures(api, "/metrics")
    source = api.get("/modelsource")
    source["groups"]["metrics"] = {"singular": "metric"}
    api.done("PUT", "/modelsource", source)
    assert api.get("/metrics") == {}
    figures(api)
