"""Numbers in query parameters: every surface has the same rules for them, each with its own bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple
from urllib.parse import quote

import pytest

from annals.domain.model.builtin import default_source
from tests.support.registries.in_process import Api, create, serving
from tests.support.subscribing import SINK, TOKENS, bearer, create_subscription

SCHEMA: Final = "/schemagroups/g/schemas/s"
ROOT: Final = bearer("root")


class NumberParam(NamedTuple):
    """A parameter and its bounds. path: `{id}` stands for the id of a subscription. refusal: the status."""

    path: str
    name: str
    minimum: int
    maximum: int
    refusal: int = 400

    def url(self, value: str, id: str) -> str:
        path = self.path.replace("{id}", id)
        return f"{path}{'&' if '?' in path else '?'}{self.name}={quote(value)}"


#: One parameter of each surface.
PARAMS: Final = {
    each.path: each
    for each in (
        NumberParam("/schemagroups", "limit", 1, 2**64 - 1),
        NumberParam("/compat/schemaregistry/v0.2/schemagroups", "limit", 1, 10_000),
        NumberParam("/compat/schemaregistry/v0.2/schemagroups/g/schemas/s/versions", "after", 0, 10**18 - 1),
        NumberParam("/compat/confluent/subjects", "limit", -(10**10) + 1, 10**10 - 1, 404),
        NumberParam("/subscriptions", "limit", 1, 1000),
        NumberParam("/subscriptions/{id}/attempts", "limit", 1, 1000),
        NumberParam("/subscriptions/{id}/deadletters", "limit", 1, 1000),
        NumberParam("/-/events", "limit", 1, 10**18 - 1),
        NumberParam("/-/findings/?format=json", "limit", 1, 1000),
        NumberParam("/-/grants", "limit", 1, 1000),
        NumberParam("/-/hash/", "parts", 2, 256),
        NumberParam("/-/interactions", "limit", 1, 1000),
        NumberParam("/-/links", "limit", 1, 1000),
        NumberParam(f"/-/references{SCHEMA}", "depth", 1, 10),
        NumberParam("/-/search?q=s", "limit", 1, 100),
        NumberParam("/-/subjects", "limit", 1, 1000),
    )
}
BAD_VALUES: Final = ("٣", "1²", "+1", " 1", "1 ", "", "1.0", "1e1", "0x1", "1_0", "9" * 20, "x")


@pytest.fixture(scope="module")
def subscribed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, str]]:
    """A registry that tests only read, and the id of its subscription."""
    url = f"sqlite:///{tmp_path_factory.mktemp('numbers') / 'annals.db'}"
    create(url, default_source())
    with serving(url, tokens=TOKENS, api_keys=True) as api:
        api.done("PUT", SCHEMA, b"text", content_type="text/plain", xregistry_format="Own/1", **ROOT)
        yield api, create_subscription(api, {"sink": SINK}, **ROOT)["id"]


@pytest.mark.parametrize("param", PARAMS.values(), ids=PARAMS)
def test_what_is_no_number_is_refused(subscribed: tuple[Api, str], param: NumberParam) -> None:
    # An Arabic digit, a sign, a fraction, an empty value and a value beyond the bounds are errors of the client
    api, id = subscribed
    bad_values = [*BAD_VALUES, *map(str, (param.minimum - 1, param.maximum + 1)), *(["-1"] * (param.minimum >= 0))]
    statuses = {value: api.send("GET", param.url(value, id), **ROOT).status_code for value in bad_values}
    assert statuses == dict.fromkeys(bad_values, param.refusal)


@pytest.mark.parametrize("param", PARAMS.values(), ids=PARAMS)
def test_numbers_within_the_bounds_are_accepted(subscribed: tuple[Api, str], param: NumberParam) -> None:
    # Leading zeros do not count, however many they are
    api, id = subscribed
    middle = min(param.maximum, 100)
    good_values = [str(param.minimum), str(param.maximum), f"00{middle}", f"{'0' * 30}{middle}"]
    statuses = {value: api.send("GET", param.url(value, id), **ROOT).status_code for value in good_values}
    assert statuses == dict.fromkeys(good_values, 200)
