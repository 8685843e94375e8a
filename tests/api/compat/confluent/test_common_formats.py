"""The versions of a subject share one xRegistry format, in Confluent's API and in the xRegistry API."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from annals.api.compat.confluent.paths import BASE
from annals.domain.model.builtin import default_source
from tests.support.examples import examples
from tests.support.registries.in_process import Api, create, serving
from tests.support.stores import schema_of

RESOURCE: Final = "/schemagroups/default/schemas/s"


class Text(NamedTuple):
    """A schema text. release: the format release that the text declares, or empty."""

    type: str
    text: str
    release: str = ""


def json_text(draft: str, **members: Any) -> str:
    return json.dumps({"$schema": draft, **members}, separators=(",", ":"))


#: One text for each release, so that the text of a version identifies its expected type and format.
TEXTS: Final = {
    "avro": Text("AVRO", '"int"'),
    "json": Text("JSON", '{"title":"undeclared"}'),
    "json-04": Text(
        "JSON", json_text("http://json-schema.org/draft-04/schema#", exclusiveMinimum=True, minimum=1), "draft-04"
    ),
    "json-07": Text("JSON", json_text("http://json-schema.org/draft-07/schema#"), "draft-07"),
    "json-20": Text("JSON", json_text("https://json-schema.org/draft/2020-12/schema"), "draft/2020-12"),
    "proto2": Text("PROTOBUF", "message M { required string a = 1; }", "2"),
    "proto3": Text("PROTOBUF", 'syntax = "proto3"; message M { string a = 1; }', "3"),
    "edition": Text("PROTOBUF", 'edition = "2023"; message M { string a = 1; }', "2023"),
}
FAMILIES: Final = {"AVRO": "Avro", "JSON": "JsonSchema", "PROTOBUF": "Protobuf"}
#: Texts that are registered one after the other, and the format of all Versions after each.
SERIES: Final = (
    (("avro", "Avro/1.11.0"), ("json", "Confluent"), ("proto3", "Confluent"), ("json-20", "Confluent")),
    (("json", "JsonSchema/draft-07"), ("json-07", "JsonSchema/draft-07"), ("json-04", "JsonSchema")),
    (("json-20", "JsonSchema/draft/2020-12"), ("json", "JsonSchema/draft/2020-12"), ("json-07", "JsonSchema")),
    (("json-04", "JsonSchema/draft-04"), ("json-20", "JsonSchema"), ("avro", "Confluent")),
    (("proto2", "Protobuf/2"), ("proto3", "Protobuf"), ("edition", "Protobuf"), ("json", "Confluent")),
    (("edition", "Protobuf/2023"), ("proto2", "Protobuf")),
)


#: The format of a stored Version, a text to register, the stored text, the common format afterwards, and whether the
#: stored text is valid in it.
STORED: Final = (
    ("Avro/1.9", "avro", '{"type":"enum","name":"E","symbols":["A"]}', "Avro/1.9", True),
    ("JSONSCHEMA/draft-2020-12", "json-20", "{}", "JSONSCHEMA/draft-2020-12", True),
    ("Protobuf/3.0", "proto3", 'syntax = "proto3";', "Protobuf/3.0", True),
    ("Protobuf/3.0", "proto2", 'syntax = "proto3";', "Protobuf", True),
    ("JsonSchema/draft-04", "json-07", '{"minimum": 1, "exclusiveMinimum": true}', "JsonSchema", False),
    ("Text/1", "avro", "a note", "Confluent", False),
)


@pytest.fixture
def api(store_url: str) -> Iterator[Api]:
    with served(store_url) as api:
        yield api


@pytest.fixture(params=["sqlite", "postgresql"])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], AbstractContextManager[str]]:
    """A factory of empty stores, one for each history."""
    if request.param == "sqlite":
        return lambda: nullcontext(f"sqlite:///{tmp_path / uuid4().hex}.db")
    server = request.getfixturevalue("postgres_server")
    return lambda: schema_of(server)


@contextmanager
def served(url: str) -> Iterator[Api]:
    create(url, default_source())
    with serving(url) as api:
        api.done("PUT", f"{BASE}/config", {"compatibility": "NONE"})
        yield api


def register(api: Api, name: str) -> Any:
    """Registers a text. Returns the response with the Versions that its interaction created or changed."""
    body = {"schema": TEXTS[name].text, "schemaType": TEXTS[name].type}
    answer = api.done("POST", f"{BASE}/subjects/s/versions", body)
    interaction = answer.headers.get("xRegistry-xregcorrelationid")
    events = api.get(f"/-/interactions/{interaction}")["events"] if interaction is not None else []
    return {**answer.json(), "versions": [event["xid"] for event in events if "/versions/" in event["xid"]]}


def shown_formats(api: Api) -> dict[str, tuple[str, bool]]:
    """The format of each live Version, and whether its document is validated."""
    versions = api.get(f"{RESOURCE}/versions")
    return {id: (version["format"], version["formatvalidated"]) for id, version in versions.items()}


def shown_schemas(api: Api, parameters: str = "") -> list[tuple[int, str, str]]:
    """The id, the type and the text of each version."""
    return [
        (one["id"], one.get("schemaType", "AVRO"), one["schema"]) for one in api.get(f"{BASE}/schemas?{parameters}")
    ]


@pytest.mark.parametrize("series", SERIES, ids=lambda series: " ".join(name for name, _ in series))
def test_versions_of_a_subject_share_a_format(api: Api, series: tuple[tuple[str, str], ...]) -> None:
    # CSR-418, CSR-405: a format without a release is checked by the declared releases; mixed types are not checked
    before, schemas = "", []
    for number, (name, format) in enumerate(series, 1):
        answer = register(api, name)
        schemas.append((answer["id"], TEXTS[name].type, TEXTS[name].text))
        assert set(shown_formats(api).values()) == {(format, format != "Confluent")}
        assert shown_schemas(api) == schemas, "versions keep their ids, types and texts"
        assert format == before or len(answer["versions"]) == number, "all change in the interaction"
        before = format


@pytest.mark.parametrize(("stored", "name", "text", "format", "is_valid"), STORED)
def test_a_version_of_another_api_gets_the_format_too(
    api: Api, stored: str, name: str, text: str, format: str, is_valid: bool
) -> None:
    # CSR-418: a schema is registered even if a stored Version is not valid in the common format
    api.done("PUT", RESOURCE, text.encode(), content_type="application/octet-stream", xregistry_format=stored)
    answer = register(api, name)
    formats = shown_formats(api)
    assert {format for format, _ in formats.values()} == {format}
    assert formats["1"][1] is is_valid
    assert shown_schemas(api)[-1] == (answer["id"], TEXTS[name].type, TEXTS[name].text)


def test_a_type_counts_for_mixed_subjects_only(api: Api) -> None:
    # CSR-418, CSR-405: after another API changes the format of the Versions, the format determines the type
    for name in ("json", "avro"):
        register(api, name)
    api.done("DELETE", f"{RESOURCE}/versions/2")
    api.done("PATCH", f"{RESOURCE}$details", {"format": "Avro/1.11.0", "schema": "long"})
    assert shown_schemas(api)[-1][1:] == ("AVRO", '"long"')
    register(api, "proto3")
    assert [type for _, type, _ in shown_schemas(api)] == ["AVRO", "PROTOBUF"]


@pytest.mark.parametrize("format", ["JsonSchema", "jsonschema", "Protobuf"])
def test_other_apis_may_name_no_release(api: Api, format: str) -> None:
    # CSR-418: the format is checked, and compared across releases
    valid = [name for name, text in TEXTS.items() if text.type == ("PROTOBUF" if format == "Protobuf" else "JSON")]
    headers = {"content_type": "application/octet-stream", "xregistry_format": format}
    for name in valid:
        api.done("PUT", f"/schemagroups/default/schemas/{name}", TEXTS[name].text.encode(), **headers)
    refused = api.send("PUT", f"{RESOURCE}", TEXTS["avro"].text.encode(), **headers)
    assert refused.status_code == 400 and refused.json()["type"].endswith("#format_violation")
    versions = [api.get(f"/schemagroups/default/schemas/{name}$details") for name in valid]
    assert all(version["formatvalidated"] for version in versions)
    assert [one["subject"] for one in api.get(f"{BASE}/schemas")] == sorted(valid)


CALLS: Final = st.one_of(
    st.tuples(st.just("register"), st.sampled_from([*TEXTS])),
    st.tuples(st.just("delete here"), st.sampled_from(["latest", "1", "2"])),
    st.tuples(st.just("delete there"), st.sampled_from(["1", "2", "3"])),
)


@pytest.mark.timeout(900)
@pytest.mark.generated
def test_histories_keep_formats_types_and_ids(new_store: Callable[[], AbstractContextManager[str]]) -> None:
    # CSR-418, CSR-405, CSR-407, CSR-905
    @settings(
        max_examples=examples(40),
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(CALLS, min_size=5, max_size=20))
    def run(history: list[tuple[str, str]]) -> None:
        with new_store() as url, served(url) as api:
            ids, past = dict[str, int](), dict[str, Any]()
            for kind, argument in history:
                _call(api, kind, argument, ids)
                shown = shown_schemas(api, "deleted=true")
                _check_state(api, ids)
                past[api.get("/-/log/head")["position"]] = shown
            for position, shown in past.items():
                assert shown_schemas(api, f"deleted=true&asof={position}") == shown

    run()


def _call(api: Api, kind: str, argument: str, ids: dict[str, int]) -> None:
    if kind == "register":
        id = register(api, argument)["id"]
        assert ids.setdefault(argument, id) == id
    else:
        folder = f"{BASE}/subjects/s" if kind == "delete here" else RESOURCE
        assert api.send("DELETE", f"{folder}/versions/{argument}").status_code < 500


def _check_state(api: Api, ids: dict[str, int]) -> None:
    """Checks invariants of every state."""
    names = {(id, TEXTS[name].type, TEXTS[name].text): name for name, id in ids.items()}
    live = [TEXTS[names[one]] for one in shown_schemas(api)]
    if not live:
        return
    formats = shown_formats(api)
    ((format, is_validated),) = set(formats.values())
    assert len(formats) == len(live)
    family, _, release = format.partition("/")
    assert is_validated is (family != "Confluent")
    if family != "Confluent":
        assert {FAMILIES[text.type] for text in live} == {family}
    if release and family != "Avro":
        assert {text.release for text in live} <= {release, ""}
