"""`/-/check` and `/-/compare` of one draft return the same reasons: generated pairs of each format, over HTTP."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from annals.domain.model.builtin import default_source
from tests.domain.formats.changes.test_agreement import PAIRS
from tests.support.examples import examples
from tests.support.registries.in_process import Api, create, serving

GROUP = "/schemagroups/g/schemas"
#: A check reports at most this many reasons in each direction.
MOST_REASONS = 20


@pytest.fixture(scope="module")
def api(shared_store_url: str) -> Iterator[Api]:
    create(shared_store_url, default_source())
    with serving(shared_store_url) as served:
        yield served


@pytest.mark.parametrize("name", PAIRS)
@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_check_and_a_comparison_agree(api: Api, name: str, data: st.DataObject) -> None:
    # UI-93
    format, text, draft_format, draft = data.draw(PAIRS[name])
    xid = f"{GROUP}/{name}{next(_numbers)}"
    body = {"format": format, "schema": json.loads(text) if text.lstrip().startswith("{") else text}
    assume(api.send("PUT", f"{xid}$details", body).status_code == 201)  # otherwise a change has made it invalid
    query = f"/-/check{xid}?compatibility=full&format={draft_format}"
    check = api.send("POST", query, draft.encode()).json()
    assume(check["valid"])
    found = api.done("POST", f"/-/compare{xid}?rightformat={draft_format}", draft.encode()).json()
    checked = Counter((one["direction"], one["rule"], one["text"]) for one in check["incompatibilities"])
    compared = Counter(
        (direction, one[direction]["rule"], one[direction]["text"])
        for one in found["changes"]
        for direction in ("backward", "forward")
        if not one[direction]["ok"]
    )
    assert not checked - compared
    assert checked == compared or sum(checked.values()) >= MOST_REASONS
    assert found["levels"]["full"]["ok"] == check["compatible"]
    for direction in ("backward", "forward"):
        assert found["levels"][direction]["ok"] == (direction not in {one[0] for one in checked})


_numbers = count()
