"""Lists of many subjects and schemas: the number of look-ups, and the same content as single reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from annals.api.compat.confluent.paths import BASE
from annals.domain.model.builtin import default_source
from annals.domain.values.json_text import dumps
from annals.projections.entities.filters.selection import BATCH_MEMBERS
from annals.projections.entities.view import View
from tests.support.registries.in_process import Api, create, serving

COUNT: Final = 2 * BATCH_MEMBERS + 1
BATCHES: Final = 3
#: The header with which newer clients request all members (CSR-113).
FULL: Final = {"confluent-accept-unknown-properties": "true"}


def _subject(number: int) -> dict[str, Any]:
    text = dumps({"type": "record", "name": f"R{number}", "doc": "d" * 300, "fields": []}).decode()
    return {
        "subject": f"s{number:05}",
        "versions": [{"version": 1, "id": number + 1, "schema": text}],
        "live": [1],
    }


@pytest.fixture
def api(store_url: str) -> Iterator[Api]:
    create(store_url, default_source())
    with serving(store_url) as served:
        body = {"source": "test", "subjects": [_subject(number) for number in range(COUNT)]}
        served.done("POST", f"{BASE}/-/import", body)
        served.done("DELETE", f"{BASE}/subjects/s00000")
        yield served


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the look-ups of entities and documents by a View."""
    seen: Counter[str] = Counter()

    def note(name: str, function: Callable[..., Any]) -> None:
        def noted(view: View, *arguments: Any) -> Any:
            seen[name] += 1
            return function(view, *arguments)

        monkeypatch.setattr(View, name, noted)

    for name in ("entity", "entities", "document", "small_documents"):
        note(name, getattr(View, name))
    return seen


@pytest.mark.parametrize("moment", ["", "&asof=HEAD"])
def test_schemas_are_read_in_batches(api: Api, looked_up: Counter[str], moment: str) -> None:
    # CSR-206, CSR-113: a list reads hundreds of schemas with a few statements, and returns each like a single read
    if moment:
        moment = f"&asof={api.send('GET', '/').headers['annals-position']}"
        api.done("DELETE", f"{BASE}/subjects/s00001")
    looked_up.clear()
    listed = api.send("GET", f"{BASE}/schemas?deleted=true{moment}", **FULL)
    assert looked_up["small_documents"] == looked_up["entities"] == BATCHES
    # The permanently deleted schema has no row now, so it is read from its past.
    assert looked_up["document"] == 0 and looked_up["entity"] < 10
    assert "content-length" not in listed.headers
    shown = {one["subject"]: one for one in listed.json()}
    assert len(shown) == COUNT
    for subject in ("s00000", "s00001", "s00200", f"s{COUNT - 1:05}"):
        path = f"{BASE}/subjects/{subject}/versions/1?deleted=true{moment}"
        assert api.send("GET", path, **FULL).json() == shown[subject]


def test_subjects(api: Api, looked_up: Counter[str]) -> None:
    # CSR-202, CSR-304
    assert api.get(f"{BASE}/subjects") == [f"s{number:05}" for number in range(1, COUNT)]
    assert api.get(f"{BASE}/subjects?deletedOnly=true") == ["s00000"]
    assert looked_up["entity"] < 10
    assert api.send("HEAD", f"{BASE}/subjects").status_code == 200
