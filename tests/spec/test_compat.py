"""Runs the tables in compat/: the requests of each row go to a new registry through the two legacy APIs.

Rows have the form of those of `test_http.py` and run on SQLite and on PostgreSQL, by default with the built-in model. A
path that begins with `SR` or `MC` is below the base path of Schema Registry or Message Catalog. A `then` can also have
`attributes`, all headers with attributes, by name without prefix; `allow`, the methods; and `refused: {type, args}`, a
whole error response. Status, title and the URL of the request are implied, an `error_detail` is not compared, and
`subject` is the path by default.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml

from annals.api.openapi.problems import ALL_PROBLEM_TYPES
from annals.domain.compat.legacy_apis import LEGACY_APIS, MESSAGECATALOG, SCHEMAREGISTRY
from annals.domain.model.builtin import default_source
from tests.spec.expected import actual_response, expected_response
from tests.spec.shared_registries import DATABASES, reusable_registry
from tests.spec.test_http import MODELS as SMALL
from tests.spec.test_http import READS, ROW, Loader
from tests.support.registries.requests import BASE, Answer, Registry, Request, ReusableRegistry, serving

TABLES = Path(__file__).with_name("compat")
BASES = {"SR": SCHEMAREGISTRY.base, "MC": MESSAGECATALOG.base}
OWN_KEYS = {"attributes", "allow", "refused"}
TYPES = {kind.name: kind for kind in ALL_PROBLEM_TYPES}
MODELS = {**SMALL, "builtin": default_source()}
ROWS = [row for path in sorted(TABLES.glob("*.yaml")) for row in yaml.load(path.read_text(), Loader)]


@pytest.fixture(scope="module", params=DATABASES)
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReusableRegistry]:
    """A registry on each database."""
    with reusable_registry(request, tmp_path_factory, MODELS) as found:
        yield found


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['id']}: {row['rule']}" for row in ROWS])
def test_row(row: dict[str, Any], stage: ReusableRegistry) -> None:
    assert set(row) <= ROW
    asyncio.run(_story(row, stage))


def test_row_ids_are_unique() -> None:
    ids = [row["id"] for row in ROWS]
    assert sorted(ids) == sorted(set(ids))


async def _story(row: dict[str, Any], stage: ReusableRegistry) -> None:
    model = row.get("model", "builtin")
    await stage.reset(model)
    async with serving(stage.database) as registry:
        for given in row.get("given", []):
            answer = await registry.ask(_request(given))
            assert 200 <= answer.status < 300, (given, answer)
        for step in [row, *row.get("also", [])]:
            await _step(registry, _request(step["when"]), step["then"], MODELS[model])


async def _step(registry: Registry, request: Request, then: Mapping[str, Any], model: Any) -> None:
    before = registry.stored_state()
    answer = await registry.ask(request)
    plain = {name: value for name, value in then.items() if name not in OWN_KEYS}
    expected = expected_response(plain, model, registry.moment.number, request)
    assert actual_response(answer, expected) == expected, (request, answer)
    _check_own_keys(answer, request, expectation_of(then, model, registry.moment.number, request))
    assert f"<{BASE}>;rel=xregistry-root" in answer.headers.get("link", "")
    if answer.status >= 400 or request.method in READS or then.get("log") == "unchanged":
        assert registry.stored_state() == before
        assert "xregistry-xregcorrelationid" not in answer.headers
    elif "dryrun" not in request.path:  # LEG-108: a response to a request with recorded events has their correlation id
        assert answer.headers["xregistry-xregcorrelationid"] == f"c{registry.moment.number}"


def expectation_of(then: Mapping[str, Any], model: Any, number: int, request: Request) -> dict[str, Any]:
    """The members of a `then` that only these tables have, expanded."""
    return {
        name: expected_response({"body": then[name]}, model, number, request)["body"] for name in OWN_KEYS & set(then)
    }


def _check_own_keys(answer: Answer, request: Request, then: Mapping[str, Any]) -> None:
    if "attributes" in then:
        wanted = {name.lower(): str(value) for name, value in then["attributes"].items()}
        assert _attributes(answer) == wanted
    if "allow" in then:
        assert set(answer.headers["allow"].split(", ")) == set(then["allow"])
    if "refused" in then:
        assert _refusal(answer) == _wanted(request, **then["refused"]), request
        assert answer.headers["content-type"] == "application/problem+json"


def _attributes(answer: Answer) -> dict[str, str]:
    prefixes = tuple(f"{family.headers.lower()}-" for family in LEGACY_APIS)
    return {name.partition("-")[2]: text for name, text in answer.headers.items() if name.startswith(prefixes)}


def _refusal(answer: Answer) -> dict[str, Any]:
    """An error response without the parts that rows do not compare: details, and places in documents."""
    body: dict[str, Any] = json.loads(answer.content)
    assert body["status"] == answer.status
    assert body.pop("detail") and body.pop("title")
    for member in ("violations", "incompatibilities"):
        body.pop(member, None)
    reason = body.get("args", {}).pop("error_detail", "")
    if body["type"].endswith("#invalid_definition"):
        assert re.search(r"\(LEG-\d+", reason), reason
    return body


def _wanted(request: Request, type: str, args: Any = None, subject: str | None = None) -> dict[str, Any]:
    kind, path = TYPES[type], request.path.partition("?")[0]
    uri = kind.uri()
    members = {
        "type": uri if uri.startswith("https:") else BASE + uri,
        "status": kind.status,
        "subject": subject or unquote(path),
        "args": args or ({} if kind.placeholders() else None),
        "instance": BASE + path,
    }
    return {name: value for name, value in members.items() if value is not None}


def _request(row: list[Any]) -> Request:
    method, path, *more = row
    base = BASES.get(path[:2])
    return Request(method, base + path[2:] if base else path, *more)
