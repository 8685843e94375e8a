"""References over generated histories: incoming ones are the reverse of outgoing ones, now and in the past."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from annals.commands.store.log import Store
from annals.domain.model.builtin import default_source
from annals.projections.entities.rebuild import rebuild
from tests.support.examples import examples
from tests.support.histories import UNHURRIED, temporary_sqlite
from tests.support.registries.in_process import Api, create, serving
from tests.support.stores import schema_of

EXAMPLES = {"sqlite": 60, "postgresql": 8}
MESSAGES = [f"/messagegroups/{group}/messages/{id}" for group in "gG" for id in "ab"] + ["/endpoints/e/messages/a"]
SCHEMAS = [f"/schemagroups/s/schemas/{id}" for id in ("t", "t:u", "v")]
VERSIONS = [f"{schema}/versions/{number}" for schema in SCHEMAS for number in "12"]
GROUPS = ["/messagegroups/g", "/messagegroups/none"]

message_uri = st.sampled_from([*MESSAGES, f"{MESSAGES[0]}/versions/1", "https://elsewhere.example/m", "/messagegroups"])
schema_uri = st.one_of(
    st.builds(str.__add__, st.sampled_from(SCHEMAS + VERSIONS), st.sampled_from(("", "#Name", ":Name", "$details"))),
    st.sampled_from(("#/schemagroups/s/schemas/t", "https://elsewhere.example/s", f"{SCHEMAS[0]}x", "/x")),
)
Call = tuple[str, str, Any]


def calls() -> SearchStrategy[Call]:
    """Writes, some of which are refused."""
    message = st.fixed_dictionaries(
        {},
        optional={
            "basemessageuri": message_uri,
            "dataschemauri": schema_uri,
            "dataschemaxid": st.sampled_from(SCHEMAS),
        },
    )
    endpoint = st.fixed_dictionaries(
        {"usage": st.just(["producer"])},
        optional={"messagegroups": st.lists(st.sampled_from(GROUPS), max_size=3), "protocol": st.just("MQTT/5.0")},
    )
    will = st.builds(
        lambda target: {"protocol": "MQTT/5.0", "protocoloptions": {"willmessage": target}},
        st.sampled_from(MESSAGES[:4]),
    )
    deleted = st.sampled_from([*MESSAGES, *SCHEMAS, *VERSIONS, *GROUPS, "/endpoints/e"])
    xref = st.builds(lambda target: {"xref": target}, st.sampled_from([*MESSAGES, None]))
    return st.one_of(
        st.tuples(st.just("PUT"), st.sampled_from(MESSAGES), message),
        st.tuples(st.just("PUT"), st.sampled_from(MESSAGES), message),
        st.tuples(st.just("PUT"), st.just("/endpoints/e"), st.one_of(endpoint, will)),
        st.tuples(st.just("PUT"), st.sampled_from(VERSIONS).map("{}$details".format), st.just({"format": "Own/1"})),
        st.tuples(st.just("PATCH"), st.sampled_from(MESSAGES).map("{}/meta".format), xref),
        st.tuples(st.just("DELETE"), deleted, st.none()),
    )


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> tuple[str, Callable[[], AbstractContextManager[str]]]:
    """The kind of a database, and a function whose context is an empty one."""
    if request.param == "sqlite":
        return request.param, temporary_sqlite
    server = request.getfixturevalue("postgres_server")
    return request.param, lambda: schema_of(server)


@pytest.mark.generated
@pytest.mark.timeout(900)
def test_both_directions_agree_now_and_then(
    database: tuple[str, Callable[[], AbstractContextManager[str]]],
) -> None:
    # UI-77
    kind, new_store = database

    @settings(max_examples=examples(EXAMPLES[kind]), **UNHURRIED, database=None, phases=[Phase.generate])
    @given(st.lists(calls(), min_size=8, max_size=16))
    def run(history: list[Call]) -> None:
        with new_store() as url:
            create(url, default_source())
            answers: dict[int, list[Any]] = {}
            with serving(url) as api:
                for method, path, body in history:
                    api.send(method, path, body)
                    answers[position(api)] = check_agreement(api, "")
                check_past(api, answers)
            with closing(Store(url)) as store:
                rebuild(store)
            with serving(url) as api:
                check_past(api, answers)

    run()


def position(api: Api) -> int:
    head: int = api.get("/-/log/head")["position"]
    return head


def check_past(api: Api, answers: dict[int, list[Any]]) -> None:
    """Asserts that references as of each position equal those that were returned at that time."""
    for moment, answer in answers.items():
        assert check_agreement(api, f"&asof={moment}") == answer


def check_agreement(api: Api, query: str) -> list[Any]:
    """All references. Asserts that outgoing and incoming ones agree, for the registry and for each entity."""
    listed = references(api, f"/?below{query}")
    out = {key(one) for one in listed if one["direction"] == "out" and one["state"] == "resolved"}
    into = {key(one) for one in listed if one["direction"] == "in"}
    assert out == into
    pages = [one for page in paged(api, f"/?below&limit=2{query}") for one in page]
    assert pages == listed
    for entity in {one["to"] for one in listed if one["state"] == "resolved"}:
        own = {key(one) for one in references(api, f"{entity}?direction=in{query}")}
        assert own == {one for one in out if is_of(entity, one[1])}
    for entity in {one["from"] for one in listed}:
        own = {key(one) for one in references(api, f"{entity}?direction=out{query}") if one["state"] == "resolved"}
        assert own == {one for one in out if is_of(entity, one[0])}
    return listed


def references(api: Api, path: str) -> list[Any]:
    found: list[Any] = api.get(f"/-/references{path}")["references"]
    return found


def paged(api: Api, path: str) -> Iterator[list[Any]]:
    answer = api.done("GET", f"/-/references{path}")
    yield answer.json()["references"]
    while following := answer.links.get("next"):
        answer = api.done("GET", following["url"].removeprefix("http://h/r"))
        yield answer.json()["references"]


def key(reference: Any) -> tuple[str, str, str]:
    return reference["from"], reference["to"], reference["attribute"]


def is_of(entity: str, xid: str) -> bool:
    """Whether an xid is that of an entity, or of a Version of that entity."""
    return xid == entity or (entity.count("/") == 4 and xid.startswith(f"{entity}/"))
