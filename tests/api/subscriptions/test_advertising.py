"""By a setting, the registry lists its subscriptions as one of its endpoints."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.support.registries.in_process import BASE, create, serving

PATH = "/endpoints/subscriptions"


def test_it_is_written_once(sqlite_url: str) -> None:
    # SUB-108: the server writes the endpoint in one interaction, without findings; a restart writes nothing
    settings: dict[str, Any] = {"subscriptions_endpoint": "subscriptions", "domain_validation": "strict"}
    with serving(sqlite_url, **settings) as api:
        found = api.get(PATH)
        assert found["usage"] == ["subscriber"] and found["protocol"] == "HTTP/1.1"
        assert found["protocoloptions"]["endpoints"] == [{"uri": f"{BASE}/subscriptions"}]
        assert found["subscriptionconfig"] == {
            "families": "array",
            "startposition": "integer",
            "starttime": "timestamp",
        }
        assert found["epoch"] == 1
        head = api.get("/-/log/head")["position"]
        last = api.get("/-/interactions?order=desc&limit=1")[0]
        assert (last["caller"], last["command"]) == ("annals", f"WriteTree PUT {PATH}")
    with serving(sqlite_url, ids="more", **settings) as api:
        assert api.get("/-/log/head")["position"] == head
    with serving(sqlite_url, "http://h/moved", ids="moved", **settings) as api:
        assert api.get(PATH)["protocoloptions"]["endpoints"] == [{"uri": "http://h/moved/subscriptions"}]


def test_a_model_without_endpoints(sqlite_url: str) -> None:
    # SUB-108: only if the model has endpoints
    create(sqlite_url)
    with serving(sqlite_url, subscriptions_endpoint="subscriptions") as api:
        assert api.get("/-/log/head")["position"] == 3


def test_a_model_that_refuses_it(sqlite_url: str, caplog: pytest.LogCaptureFixture) -> None:
    # SUB-108: the server starts nevertheless, and logs a warning
    attributes = {"owner": {"type": "string", "required": True}}
    create(sqlite_url, {"groups": {"endpoints": {"singular": "endpoint", "attributes": attributes}}})
    with caplog.at_level(logging.WARNING), serving(sqlite_url, subscriptions_endpoint="subscriptions") as api:
        assert api.get("/endpoints") == {}
    assert f"the endpoint {PATH}, which makes the subscriptions known, cannot be written" in caplog.text
