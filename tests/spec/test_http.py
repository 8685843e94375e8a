"""Runs the tables in http/: the requests of each row go to a new registry over HTTP, on SQLite and on PostgreSQL.

    - id: ENT-31a               one or more rule ids, with a letter where a rule has several rows
      rule: in a few words of our own
      model: dirs               the name of a modelsource in models.yaml, or `builtin`; `dirs` by default
      given: [[PUT, /dirs/d1, {}]]        requests before: [method, path, body, headers], all have to succeed
      when: [GET, /dirs/D1]
      then: {status: 404}       see below
      also: [{when: ..., then: ...}]      further requests

Bodies that are text or bytes (`!!binary`) are sent unchanged, others as JSON with that Content-Type. `!x 9` is a text
of nine letters.
`then` has: `status`; `headers`, which have to be equal, null for a missing one; `metadata`, all `xRegistry-` headers
of a document; `body`, the whole JSON body, or `text` or `base64`; `only`, some of its members; instead of these,
`problem: {type, subject, args}` for a whole error response (title, status and a subject that is the request's are
implied, and an `error_detail` is not compared); `log: unchanged` if an accepted request records nothing. The short
forms in bodies are in `expected.py`. A request that is refused or that reads never changes the log and the read model
(P-15/40).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from annals.domain.model.builtin import default_source
from tests.spec.expected import KEYS, actual_response, expected_response
from tests.spec.shared_registries import DATABASES, reusable_registry
from tests.support.registries.requests import BASE, Answer, Registry, Request, ReusableRegistry, serving

ROW = {"id", "rule", "model", "given", "when", "then", "also"}
READS = ("GET", "HEAD", "OPTIONS")
TABLES = Path(__file__).with_name("http")


class Loader(yaml.CSafeLoader):
    """Loads timestamps as text, as in JSON; `!x 9` is nine letters."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


Loader.add_constructor("!x", lambda loader, node: "x" * int(node.value))


def _load(path: Path) -> Any:
    return yaml.load(path.read_text(), Loader)


MODELS = {"builtin": default_source(), **_load(TABLES / "models.yaml")}
#: The tables whose responses come from queries for several entities, which differ between the databases.
QUERIES = {"deleting", "filter", "nested", "pages", "sort", "views", "xref"}
TABLE_ROWS = {path.stem: _load(path) for path in sorted(TABLES.glob("*.yaml")) if path.stem != "models"}
ROWS = [row for rows in TABLE_ROWS.values() for row in rows]


@pytest.fixture(scope="module", params=DATABASES)
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReusableRegistry]:
    """A registry on each database."""
    with reusable_registry(request, tmp_path_factory, MODELS) as found:
        yield found


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(
            row,
            id=f"{row['id']}: {row['rule']}",
            marks=[pytest.mark.both_databases] if table in QUERIES else [],
        )
        for table, rows in TABLE_ROWS.items()
        for row in rows
    ],
)
def test_row(row: dict[str, Any], stage: ReusableRegistry) -> None:
    assert set(row) <= ROW
    asyncio.run(_story(row, stage))


def test_row_ids_are_unique() -> None:
    ids = [row["id"] for row in ROWS]
    assert sorted(ids) == sorted(set(ids))


async def _story(row: dict[str, Any], stage: ReusableRegistry) -> None:
    model = row.get("model", "dirs")
    await stage.reset(model)
    async with serving(stage.database) as registry:
        for given in row.get("given", []):
            answer = await registry.ask(Request(*given))
            assert 200 <= answer.status < 300, (given, answer)
        for step in [row, *row.get("also", [])]:
            await _step(registry, Request(*step["when"]), step["then"], MODELS[model])


async def _step(registry: Registry, request: Request, then: dict[str, Any], model: Any) -> None:
    assert set(then) <= KEYS
    before = registry.stored_state()
    answer = await registry.ask(request)
    expected = expected_response(then, model, registry.moment.number, request)
    assert actual_response(answer, expected) == expected, request
    assert f"<{BASE}>;rel=xregistry-root" in answer.headers.get("link", "")
    if answer.status >= 400 or request.method in READS or then.get("log") == "unchanged":
        assert registry.stored_state() == before
    _is_complete(answer, then)


def _is_complete(answer: Answer, then: dict[str, Any]) -> None:
    """Checks that a row with a JSON response has an expectation for its content."""
    if answer.headers.get("content-type", "").startswith("application/json") and answer.content:
        assert {"body", "only", "problem", "text", "base64"} & set(then)
