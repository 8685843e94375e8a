"""Interactions that no registry records: a link appends nothing of them, and says why."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import count
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from annals.commands.append_foreign import MAX_AHEAD
from annals.domain.model.builtin import default_source
from annals.projections.replication.log.ingest import LogIngester
from annals.projections.replication.log.link_status import LinkStatusRecorder
from annals.projections.replication.log.log_lines import (
    BrokenFeed,
    LogLineParser,
    parse_feed_events,
    parse_interactions,
)
from annals.projections.replication.log.log_pull import _stream_interactions
from tests.support.registries.in_process import Api, create, serving

_TIME: Final = "2026-01-01T00:00:00.000000Z"
_GROUP: Final = "/schemagroups/g"
_SCHEMA: Final = f"{_GROUP}/schemas/s"
_HASH: Final = 32 * "00"


def _header(**members: Any) -> dict[str, Any]:
    known = {"first": 1, "last": 1, "xregcorrelationid": "a1", "time": _TIME, "caller": "ann", "command": "write"}
    return {**known, "registryurl": "http://a", "chain": _HASH, "state": _HASH, **members}


def _event(xid: Any = _GROUP, type: Any = "schemagroups", **members: Any) -> dict[str, Any]:
    attributes = {"schemagroupid": "g", "createdat": _TIME, "modifiedat": _TIME, "schemascount": 0}
    known = {"position": 1, "stream": str(xid).lower(), "revision": 1, "topic": "EntityCreated:1", "epoch": 1}
    known |= {"attributes": attributes, "private": {}, "changed": [], "xregcorrelationid": "a1", "time": _TIME}
    return {**known, "xid": xid, "type": type, **members}


def _lines(header: Mapping[str, Any], event: Mapping[str, Any]) -> list[bytes]:
    return [json.dumps(members).encode() + b"\n" for members in (header, event)]


def test_a_good_interaction() -> None:
    # LEG-910
    (interaction,) = parse_interactions(_lines(_header(), _event()))
    assert [event.xid for event in interaction.events] == [_GROUP]


@pytest.mark.parametrize(
    ("header", "event"),
    [
        ({"caller": 5}, {}),
        ({"command": None}, {}),
        ({"registryurl": []}, {}),
        ({"xregcorrelationid": 7}, {}),
        ({"xregcorrelationid": ""}, {}),
        ({"authenticator": 1}, {}),
        ({"state": "00"}, {}),
        ({"first": 2**63, "last": 2**63}, {"position": 2**63}),
        ({}, {"xid": f"{_SCHEMA}/versions/1/x/y/z"}),
        ({}, {"xid": f"{_SCHEMA}/versions/1/x/y", "type": "schemagroups.schemas.versions.x"}),
        ({}, {"xid": f"{_SCHEMA}/others/1", "type": "schemagroups.schemas.others"}),
        ({}, {"xid": f"{_GROUP}/"}),
        ({}, {"xid": f"{_GROUP}/../own", "type": "schemagroups..."}),
        ({}, {"xid": "schemagroups/g"}),
        ({}, {"xid": "/schemagroups/a b"}),
        ({}, {"xid": "/schemagroups/a\0"}),
        ({}, {"xid": "/Schemagroups/a", "type": "Schemagroups"}),
        ({}, {"xid": "/model"}),
        ({}, {"xid": "/model", "type": "/model"}),
        ({}, {"xid": 5}),
        ({}, {"type": "schemas"}),
        ({}, {"attributes": "boom"}),
        ({}, {"attributes": None}),
        ({}, {"private": []}),
        ({}, {"epoch": -1}),
        ({}, {"epoch": 2**70}),
        ({}, {"topic": "Other:1"}),
    ],
)
def test_what_no_registry_records(header: dict[str, Any], event: dict[str, Any]) -> None:
    # LEG-910: an interaction of another log is appended as it is, or not at all
    with pytest.raises(BrokenFeed, match="cannot be read"):
        list(parse_interactions(_lines(_header(**header), _event(**event))))


@pytest.mark.parametrize("limit", [3000, 5000])
def test_an_interaction_has_a_limit(limit: int) -> None:
    """LEG-910: an endless interaction takes no more memory than the limit; others before it are complete."""
    first = [*_lines(_header(), _event())]
    (endless, *_), event = _lines(_header(first=2, last=2**40, xregcorrelationid="a2"), {}), _event()
    fed = 0

    def feed() -> Iterator[bytes]:
        nonlocal fed
        yield from [*first, endless]
        for position in count(2):
            line = json.dumps({**event, "position": position}).encode()
            fed += len(line)
            yield line

    found = parse_interactions(feed(), limit)
    assert next(found).last == 1
    with pytest.raises(BrokenFeed, match=f"a2 has more than {limit} bytes, the limit of ANNALS_LINK_MAX_INTERACTION"):
        next(found)
    assert limit - len(endless) < fed <= limit - len(endless) + 2 * len(first[1])


def test_many_interactions_have_no_limit_together() -> None:
    # LEG-910
    lines = [
        line
        for position in range(1, 50)
        for line in _lines(
            _header(first=position, last=position, xregcorrelationid=f"a{position}"), _event(position=position)
        )
    ]
    assert len(list(parse_interactions(lines, 2 * sum(map(len, lines[:2]))))) == 49


@pytest.mark.parametrize(
    "line",
    [
        *(b"{", b"[]", b"5", b"{}", b'{"last": 1}', b'{"last": "x", "xregcorrelationid": "a"}'),
        b'{"position": 1, "stream": "/"}',
    ],
)
def test_a_feed_that_is_read_without_contents_is_checked(line: bytes) -> None:
    # LEG-910
    header, event = _lines(_header(), _event())
    assert list(parse_feed_events([header, None, event, b'{"document": "x"}'])) == [("a1", 1, _GROUP)]
    with pytest.raises(BrokenFeed, match="cannot be read"):
        list(parse_feed_events([line]))


def test_a_header_alone_is_a_part() -> None:
    # LEG-913: a cursor does not move to the position of an interaction whose events have not arrived
    parser = LogLineParser()
    header, event = _lines(_header(), _event())
    assert parser.feed(header) is None and parser.has_partial
    assert parser.feed(event) is not None and not parser.has_partial


@pytest.fixture
def api(store_url: str) -> Iterator[Api]:
    create(store_url, default_source())
    with serving(store_url, tokens='{"root": {"name": "root", "role": "admin"}}') as api:
        api.client.headers["authorization"] = "Bearer root"
        api.done("PUT", "/-/links/r", {"url": "http://a", "mode": "receive", "scope": {"groups": [_GROUP]}})
        yield api


def _push(api: Api, header: Mapping[str, Any], event: Mapping[str, Any]) -> tuple[int, str]:
    content = b"".join(_lines(header, event))
    request = api.client.post(
        "/-/links/r/log?after=0", content=content, headers={"content-type": "application/x-ndjson"}
    )
    answer = api.runner.run(request)
    return answer.status_code, answer.text


def test_an_entity_needs_its_owner(api: Api) -> None:
    # LEG-910: nothing of the interaction is appended
    schema = {"schemaid": "s", "versionid": "1", "createdat": _TIME, "modifiedat": _TIME}
    orphan = _event(_SCHEMA, "schemagroups.schemas", attributes=schema)
    status, text = _push(api, _header(), orphan)
    assert status == 409 and f"has no owner: {_GROUP} does not exist here" in text
    assert _push(api, _header(), _event(f"{_GROUP}/x"))[0] == 400
    assert api.send("GET", _GROUP).status_code == 404
    assert _push(api, _header(), _event())[0] == 200
    assert api.send("GET", _GROUP).status_code == 200


def test_a_time_far_ahead(api: Api) -> None:
    # LEG-910: later interactions of this registry would have it, because their times never go back
    now = datetime.fromisoformat(api.done("GET", "/-/log/head").json()["time"])  # by the clock of the test
    ahead = now + MAX_AHEAD + timedelta(hours=1)
    times = [f"{moment:%Y-%m-%dT%H:%M:%S.%fZ}" for moment in (ahead, ahead - timedelta(hours=2))]
    status, text = _push(api, _header(time=times[0]), _event(time=times[0]))
    assert status == 409 and "far ahead of the clock here" in text
    assert _push(api, _header(time=times[1]), _event(time=times[1]))[0] == 200


def test_a_stream_that_ends_anywhere_moves_no_cursor_too_far() -> None:
    # LEG-913: the position of an event precedes it, and a connection may end between both
    frames = [(None, _header()), (1, _event()), (None, _header(first=2, last=3))]
    frames += [(2, _event(position=2)), (3, _event(f"{_GROUP}2", position=3))]
    lines: list[bytes] = []
    ends: list[int] = []  # the position up to which all has arrived, after each line
    for position, members in frames:
        place = [] if position is None else [f"id: {position}".encode()]
        lines += [b"event: x", *place, b"data: " + json.dumps(members).encode(), b""]
        known = ends[-1] if ends else 0
        last = position if position in (1, 3) else known
        ends += [*[known] * (1 + len(place)), last, last]
    for length, end in enumerate(ends, 1):
        assert _followed(lines[:length]) == end


def _followed(lines: Sequence[bytes]) -> int:
    """The cursor after a stream of lines that arrive one by one."""
    ingester, recorder, last = SimpleNamespace(cursor=0), SimpleNamespace(), 0
    parts = [part for line in lines for part in (line, None)]
    found = _stream_interactions(parts, cast("LogIngester", ingester), cast("LinkStatusRecorder", recorder), 1 << 20)
    for interaction in found:
        if interaction is None:
            ingester.cursor = max(ingester.cursor, last)  # recorded
        else:
            last = interaction.last
    return int(ingester.cursor)
