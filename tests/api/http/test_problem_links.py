"""Each refusal links to the explanation of its problem type."""

from __future__ import annotations

from urllib.parse import urldefrag

import pytest

from annals.api.openapi.problems import ALL_PROBLEM_TYPES
from annals.domain.errors.http_errors import DOCS_PATH, HttpProblem
from tests.support.registries.in_process import BASE, Api

#: Refused requests, with each kind of error body: of the specification, of HTTP, below `/-/`, of a legacy API.
REFUSED = {
    ("PUT", "/dirs/d", '{"epoch": 9}'): "mismatched_epoch",
    ("GET", "/dirs/none", ""): "not_found",
    ("GET", "/-/events?limit=x", ""): "bad_request",
    ("GET", "/-/nope", ""): "api_not_found",
    ("POST", "/subscriptions", "{}"): "invalid_subscription",
    ("GET", "/compat/schemaregistry/v0.2/schemagroups/none", ""): "not_found",
}


@pytest.mark.parametrize(("asked", "name"), REFUSED.items(), ids=lambda each: str(each))
def test_a_refusal_links_to_its_explanation(api: Api, asked: tuple[str, str, str], name: str) -> None:
    api.done("PUT", "/dirs/d", {})
    method, path, body = asked
    refused = api.send(method, path, body.encode() or None, content_type="application/json")
    assert refused.json()["type"].endswith(f"#{name}")
    links = [link for link in refused.headers.get_list("link") if link.endswith(";rel=help")]
    assert links == [f"<{BASE}{DOCS_PATH}#{name}>;rel=help"]
    page, anchor = urldefrag(links[0].partition(">")[0][1:])
    entry = api.send("GET", page.removeprefix(BASE)).text.partition(f'<dt id="{anchor}">')[2].partition("</dd>")[0]
    assert "<p>Cause: " in entry
    assert "<p>Cure: " in entry


def test_the_type_of_a_problem_of_this_server_is_its_explanation() -> None:
    for kind in ALL_PROBLEM_TYPES:
        page, anchor = urldefrag(kind.uri())
        assert anchor == kind.name
        assert (page == DOCS_PATH) == issubclass(kind, HttpProblem)
