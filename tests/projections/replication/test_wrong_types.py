"""Answers of another registry with values of wrong types: the link fails and says so, and nothing else does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from annals.projections.replication.log.log_lines import NDJSON
from tests.support.polling import until
from tests.support.registries.other_registry import Answer, json_answer, other_registry
from tests.support.registries.restarted import Registry, registries

_STATE = "00" * 32
_UPSTREAM, _HEAD, _HASH = "GET /-/log/upstream", "GET /-/log/head", "GET /-/hash/schemagroups/g"
_PULL: dict[str, Any] = {"scope": {"groups": ["/schemagroups/g"]}}
_EVENTS = {**_PULL, "mode": "events"}
_PUSH = {"mode": "push", "remote": "in"}
_RECEIVER = {"GET /-/links/in": json_answer({"status": {"position": 0}})}
_NO_JSON = "something that is not JSON, or not acceptable JSON"
_NO_OBJECT = "something that is not a JSON object"
_NO_POSITION = "a position of a log"
_NO_STATE = "without a state hash of 64 hex digits"
_NO_TIME = "a time that is not an RFC 3339 timestamp"
_NO_HASHES = "something that is not the hashes of these parts"


def _head(**members: Any) -> Answer:
    return json_answer({"position": 3, "state": _STATE, "time": "2026-01-01T00:00:00Z", **members})


#: The members of a link, a request, the answer to it, and what the link says about it.
_CASES: tuple[tuple[dict[str, Any], str, Answer, str], ...] = (
    (_PULL, _HEAD, json_answer([]), _NO_OBJECT),
    (_PULL, _HEAD, json_answer({}), _NO_POSITION),
    (_PULL, _HEAD, _head(position="3", state=1), _NO_POSITION),
    (_PULL, _HEAD, _head(position=True), _NO_POSITION),
    (_PULL, _HEAD, _head(position=-1), _NO_POSITION),
    (_PULL, _HEAD, _head(position=1e30), _NO_POSITION),
    (_PULL, _HEAD, _head(position=2**63), _NO_POSITION),
    (_PULL, _HEAD, _head(state=None), _NO_STATE),
    (_PULL, _HEAD, _head(state="00"), _NO_STATE),
    (_PULL, _HEAD, _head(state="zz" * 32), _NO_STATE),
    (_PULL, _HEAD, _head(time=5), _NO_TIME),
    (_PULL, _HEAD, _head(time="x"), _NO_TIME),
    (_PULL, _HEAD, _head(time="2026-01-01T00:00:00"), _NO_TIME),
    (_PULL, _HEAD, Answer(b"<p>sign in"), _NO_JSON),
    (_PULL, _UPSTREAM, Answer(b'{"registry":"\\ud800"}'), _NO_JSON),
    (_PULL, _UPSTREAM, Answer(b"[" * 5000 + b"]" * 5000), _NO_JSON),
    (_PULL, _UPSTREAM, Answer(b'{"registry":"r","follows":' + b"[" * 900 + b"]" * 900 + b"}"), _NO_JSON),
    (_PULL, _UPSTREAM, Answer(b'"' + b" " * (1 << 22) + b'"'), "its answer has more than 4194304 bytes"),
    (_PULL, _HASH, json_answer({"parts": []}), _NO_HASHES),
    (_PULL, _HASH, json_answer({"count": 0, "hash": "", "parts": []}), _NO_HASHES),
    (_PULL, _HASH, json_answer({"count": 0, "hash": "", "parts": [{"count": "1", "hash": ""}]}), _NO_HASHES),
    (_PULL, _HASH, json_answer({"count": 0, "hash": "", "parts": [{"count": 1, "hash": ""}]}), _NO_HASHES),
    (_EVENTS, "POST /subscriptions", json_answer([], 201), _NO_OBJECT),
    (_EVENTS, "POST /subscriptions", json_answer({"id": 5}, 201), "without an id of the subscription"),
    (_PUSH, "GET /-/links/in", json_answer({}), _NO_POSITION),
    (_PUSH, "GET /-/links/in", json_answer({"status": {"position": "3"}}), _NO_POSITION),
    (_PUSH, "POST /-/links/in/log", json_answer({"position": None}), _NO_POSITION),
    (_PUSH, "POST /-/links/in/log", json_answer({"position": 0}), "the position 0, so it took nothing"),
)


_TOKEN = "S3cretTokenOfTheLink"
_HEADER = {"first": 1, "last": 1, "xregcorrelationid": _TOKEN, "time": "2026-01-01T00:00:00Z"}
#: Lines of a log that repeat the token, and what the link says about them.
_ECHOES = (
    ([_HEADER, _HEADER], "the interaction *** ends before its last event"),
    ([_HEADER, {"position": 7}], "7 where 1 comes next"),
    ([{"position": _TOKEN}], "cannot be read"),
    # This text is cut within the token.
    ([_HEADER, {"position": 1, "stream": "/", "topic": "x" * 160 + _TOKEN, "revision": 1}], "cannot be read"),
)


@pytest.mark.parametrize(("lines", "said"), _ECHOES)
def test_what_a_log_repeats_is_no_secret(here: Registry, lines: list[dict[str, Any]], said: str) -> None:
    """SUB-303, LEG-901: errors about the content of a log hide the secrets of the link, too."""
    content = "".join(json.dumps(line) + "\n" for line in lines).encode()
    headers = {"content-type": NDJSON, "link": "</-/log?after=3>;rel=next"}
    with other_registry({"GET /-/log": Answer(content, headers=headers)}) as other:
        try:
            members = {"id": "l", "url": other.url, "credential": {"token": _TOKEN}, **_PULL}
            here.done("POST", "/-/links", members)
            until(lambda: said in here.status("l").get("error", ""))
            assert _TOKEN[:5] not in here.request("GET", "/-/links/l").text
        finally:
            here.done("DELETE", "/-/links/l")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """A registry with something to push."""
    home: Path = tmp_path_factory.mktemp("registries")
    with registries(home, "here") as (here,):
        here.write("own/s/1")
        yield here


@pytest.mark.parametrize(("members", "request_line", "answer", "said"), _CASES)
def test_wrong_types_are_errors_of_the_link(
    here: Registry, members: dict[str, Any], request_line: str, answer: Answer, said: str
) -> None:
    """LEG-901: the link can be created, is failing, and can be shown, with all links and in the metrics."""
    with other_registry({**_RECEIVER, request_line: answer}) as other:
        try:
            here.done("POST", "/-/links", {"id": "l", "url": other.url, **members})
            until(lambda: said in here.status("l").get("error", ""))
            for path in ("/-/links", "/-/metrics", "/-/log/upstream"):
                assert here.request("GET", path).status_code == 200, path
            head = here.status("l").get("head", {"position": 0, "time": ""})
            assert type(head["position"]) is int and isinstance(head["time"], str), json.dumps(head)
        finally:
            here.done("DELETE", "/-/links/l")
