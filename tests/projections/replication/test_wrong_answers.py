"""Answers for a log that are not from a registry, such as those of a proxy: a link fails, and loses nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.faulty_proxy import Answer, Change, faulty_proxy
from tests.support.polling import until
from tests.support.registries.other_registry import DEFAULTS, json_answer, other_registry
from tests.support.registries.restarted import registries, wait_until_equal_logs

_NDJSON = {"content-type": "application/x-ndjson"}


def _without_last_line(answer: Answer) -> Answer:
    return answer._replace(body=b"".join(answer.body.splitlines(keepends=True)[:-1]))


#: What a proxy makes of the answer for the log, and what the link says about it.
_ANSWERS: dict[str, tuple[Callable[[Answer], Answer], str]] = {
    "empty": (lambda answer: Answer(200, _NDJSON, b""), "without a link to its next page"),
    "no link": (lambda answer: Answer(200, _NDJSON, answer.body), "without a link to its next page"),
    "strange link": (
        lambda answer: Answer(200, _NDJSON | {"link": "</-/log?after=x>;rel=next"}, b""),
        "without a link to its next page",
    ),
    "no content": (lambda answer: Answer(204, answer.headers, b""), "answers 204 with application/x-ndjson"),
    "moved": (lambda answer: Answer(302, {"location": "/elsewhere"}, b""), "answers 302 with no content type"),
    "page": (
        lambda answer: Answer(200, {"content-type": "text/html; charset=utf-8"}, b"<p>sign in"),
        "answers 200 with text/html, not 200 with application/x-ndjson",
    ),
    "cut off": (_without_last_line, "the feed ends within an interaction"),
}


def _changed_log(change: Callable[[Answer], Answer]) -> Change:
    """The change of answers with the lines of the log, not of its streams."""
    return lambda path, accept, answer: (
        change(answer) if path.startswith("/-/log?") and accept == _NDJSON["content-type"] else answer
    )


@pytest.mark.parametrize("case", _ANSWERS)
def test_a_wrong_answer_moves_no_cursor(tmp_path: Path, case: str) -> None:
    """LEG-910, LEG-913: events are missed by no answer; the link says what is wrong with it, and continues later."""
    change, said = _ANSWERS[case]
    with (
        registries(tmp_path, "a", "b", places=None) as (a, b),
        faulty_proxy(a.url, change=_changed_log(change)) as proxy,
    ):
        a.write("g/s/1")
        b.link("a", proxy.url, interval=1)
        until(lambda: said in b.status("a").get("error", ""))
        assert b.status("a")["state"] == "failing"
        assert b.status("a").get("position", 0) < a.head()["position"]
        proxy.change = None
        wait_until_equal_logs(a, b)


def test_a_registry_with_contradictory_hashes_is_not_called_equal(tmp_path: Path) -> None:
    """LEG-913: the verdict after a repair is that of the hashes, not that of what the repair has found to do."""
    part = {"count": 1, "hash": "11" * 32, "from": "/schemagroups/g", "to": "/schemagroups/g"}
    answers = {
        "GET /modelsource": json_answer({}),
        "GET /-/hash/schemagroups/g": json_answer({**part, "parts": [{"count": 0, "hash": "00" * 32}]}),
    }
    with registries(tmp_path, "b") as (b,), other_registry(answers) as other:
        b.link("a", other.url, interval=3600, enabled=False, scope={"groups": ["/schemagroups/g"]})
        repaired = b.done("POST", "/-/links/a/actions/repair")
        assert (repaired["repaired"], repaired["status"]["verdict"]) == (0, "differs")
        assert repaired["status"]["compared"] == {"position": 3, "here": "", "there": part["hash"]}
        assert "differences" not in repaired["status"]
        other.answers.update(DEFAULTS)
        assert b.done("POST", "/-/links/a/actions/repair")["status"]["verdict"] == "equal"
