"""Random histories of calls: each response and all reads agree with a simple model, also for past moments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from annals.api.compat.confluent.paths import BASE
from annals.domain.model.builtin import default_source
from annals.projections.entities import schema_versions
from tests.api.compat.confluent.registry_model import TEXTS, Model, Refused, Register, facts
from tests.support.examples import examples
from tests.support.registries.in_process import Api, create, serving
from tests.support.stores import schema_of

NAMES: Final = ("a", "b", ":.lab:c")
#: The kinds of calls; frequent kinds are listed several times.
KINDS: Final = (*["register"] * 8, "look_up", "look_up", *["delete_version"] * 5, "delete_subject", "level", "mode")
FULL: Final = {"confluent_accept_unknown_properties": "true"}
#: A call: the name of a method of the model, and its arguments.
Call = tuple[str, tuple[Any, ...]]


@pytest.fixture(params=["sqlite", "postgresql"])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], AbstractContextManager[str]]:
    """A factory of empty stores, one for each history."""
    if request.param == "sqlite":
        return lambda: nullcontext(f"sqlite:///{tmp_path / uuid4().hex}.db")
    server = request.getfixturevalue("postgres_server")
    return lambda: schema_of(server)


@st.composite
def registrations(draw: st.DrawFn, name: str) -> Register:
    text = draw(st.sampled_from([*TEXTS, "INT", "INT", "RECORD", "USER"]))
    others = [":.lab:c"] if name.startswith(":.") else NAMES
    references = st.tuples(st.sampled_from(others), st.integers(1, 3))
    return Register(
        text,
        draw(references) if text == "USER" and draw(st.integers(0, 5)) else None,
        draw(st.sampled_from([None, None, None, "ada"])),
        draw(st.sampled_from([None, None, None, None, -1, 1, 2, 3])),
        draw(st.sampled_from([True, True, False])),
    )


@st.composite
def calls(draw: st.DrawFn) -> Call:
    name = draw(st.sampled_from(("a", "a", *NAMES)))
    permanent = draw(st.booleans())
    kind = draw(st.sampled_from(KINDS))
    match kind:
        case "register":
            return kind, (name, draw(registrations(name)))
        case "look_up":
            return kind, (name, draw(registrations(name))._replace(version=None), draw(st.booleans()))
        case "delete_subject":
            return kind, (name, permanent)
        case "delete_version":
            return kind, (name, draw(st.sampled_from([None, None, None, 1, 2, 3])), permanent)
        case "level":
            return "set_level", (name, draw(st.sampled_from([None, "NONE", "BACKWARD"])))
    return "set_mode", (name, draw(st.sampled_from([None, None, None, "READWRITE", "READONLY"])))


@pytest.mark.timeout(900)
@pytest.mark.generated
@pytest.mark.parametrize("at_once", [0, schema_versions.NEWEST_VERSIONS])
def test_histories_answer_as_a_plain_registry(
    new_store: Callable[[], AbstractContextManager[str]], monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    # CSR-401 to CSR-412, CSR-421, CSR-502 to CSR-516, CSR-601 to CSR-605, CSR-702 to CSR-710, CSR-905
    monkeypatch.setattr(schema_versions, "NEWEST_VERSIONS", at_once)

    @settings(
        max_examples=examples(20),
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(calls(), min_size=30, max_size=60))
    def run(history: list[Call]) -> None:
        with new_store() as url, served(url) as api:
            follow(api, history)

    run()


@contextmanager
def served(url: str) -> Iterator[Api]:
    create(url, default_source())
    with serving(url) as api:
        yield api


def follow(api: Api, history: list[Call]) -> None:
    model, past = Model(), dict[int, Any]()
    for number, (kind, arguments) in enumerate(history):
        try:
            expected: Any = getattr(model, kind)(*arguments)
        except Refused as refused:
            expected = f"code {refused.args[0]}"
        assert ask(api, kind, arguments) == expected, f"call {number}: {kind} {arguments}"
        position = int(api.send("GET", "/-/log/head").json()["position"])
        shown = read_facts(api, "")
        assert shown == facts(model), f"after call {number}: {kind} {arguments}"
        assert past.setdefault(position, shown) == shown, "what records nothing changes nothing"
    for position in [*past][:: max(1, len(past) // 5)]:
        assert read_facts(api, f"asof={position}") == past[position], f"as of {position}"


def ask(api: Api, kind: str, arguments: tuple[Any, ...]) -> Any:
    """Sends a call, and returns the response in the form of the model's results."""
    name, *rest = arguments
    path = f"{BASE}/subjects/{name}"
    match kind, rest:
        case "register", [Register() as request]:
            answer = api.send("POST", f"{path}/versions?force={request.force}", body_of(request))
        case "look_up", [Register() as request, deleted]:
            answer = api.send("POST", f"{path}?deleted={deleted}", body_of(request))
        case "delete_subject", [permanent]:
            answer = api.send("DELETE", f"{path}?permanent={permanent}")
        case "delete_version", [number, permanent]:
            answer = api.send("DELETE", f"{path}/versions/{number or 'latest'}?permanent={permanent}")
        case _, [value]:
            setting = "config" if kind == "set_level" else "mode"
            body = {"compatibility" if kind == "set_level" else "mode": value} if value else None
            answer = api.send("PUT" if value else "DELETE", f"{BASE}/{setting}/{name}", body)
    found = answer.json()
    if answer.status_code != 200:
        return f"code {found['error_code']}"
    if kind in ("register", "look_up"):
        return found["version"], found["id"]
    return found if kind.startswith("delete") else found.get("compatibility") or found["mode"]


def body_of(request: Register) -> dict[str, Any]:
    body: dict[str, Any] = {"schema": TEXTS[request.text]}
    if request.reference is not None:
        subject, version = request.reference
        body["references"] = [{"name": "R", "subject": subject, "version": version}]
    if request.owner is not None:
        body["metadata"] = {"properties": {"owner": request.owner}}
    return body if request.version is None else {**body, "version": request.version}


def read_facts(api: Api, asof: str) -> dict[str, Any]:
    """The results of all reads, in the form of `facts`. asof: a query parameter, or empty."""

    def read(path: str) -> Any:
        return api.send("GET", f"{BASE}{path}{'&' if '?' in path else '?'}{asof}", **FULL).json()

    schemas = read("/schemas?deleted=true&subjectPrefix=:*:")
    holders = {id: read(f"/schemas/ids/{id}/versions?deleted=true") for id in sorted({one["id"] for one in schemas})}
    settings = {name: (read(f"/config/{name}"), read(f"/mode/{name}")) for name in NAMES}
    assert len({(one["id"], one["schema"], str(one.get("metadata"))) for one in schemas}) == len(holders)
    return {
        "subjects": read("/subjects"),
        "schemas": [tuple(one[part] for part in ("subject", "version", "id", "schema", "deleted")) for one in schemas],
        "holders": {id: [(one["subject"], one["version"]) for one in found] for id, found in holders.items()},
        "levels": {
            name: config["compatibilityLevel"] for name, (config, _) in settings.items() if "error_code" not in config
        },
        "modes": {name: mode["mode"] for name, (_, mode) in settings.items() if "error_code" not in mode},
    }
