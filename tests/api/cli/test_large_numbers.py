"""Numbers that are too large for databases, libraries and timers are refused with one line."""

from __future__ import annotations

import pytest

from annals.api.cli.outcome import ExitCode
from tests.support.console import Annals

NINES = "9" * 25
CASES = {
    "a position": (f"log show {NINES}", "9223372036854775807"),
    "lines": (f"log tail -n {NINES}", "9223372036854775807"),
    "a limit": (f"log history -n {NINES}", "9223372036854775807"),
    "denials": (f"auth denials --limit {NINES}", "9223372036854775807"),
    "the start of a replay": (f"subscriptions replay x --from {NINES}", "9223372036854775807"),
    "a number with thousands of digits": (f"subscriptions replay x --from {'9' * 5000}", "9223372036854775807"),
    "the end of a replay": (f"subscriptions replay x --from 1 --to {NINES}", "9223372036854775807"),
    "a last position": (f"rebuild --as-of {NINES}", "9223372036854775807"),
    "events of a segment": (f"segments write --events {NINES}", "2147483647"),
    "rows of a segment": (f"segments write --group {2**31}", "2147483647"),
    "archived events": (f"log archive --before 15000 --to arch --events {NINES}", "2147483647"),
    "archived rows": (f"log archive --before 15000 --to arch --group {NINES}", "2147483647"),
    "partitions": (f"publish --kafka localhost:1 --partitions {NINES}", "2147483647"),
    "rows of Spark": (f"spark sql x --rows {NINES}", "2147483647"),
    "hours": ("lake optimize --to x --keep-hours inf", "2147483647"),
    "seconds of a key": (f"keys rotate x --grace {NINES}", "604800"),
    "seconds of a lake": ("lake append --to x --seconds inf", "604800"),
    "seconds of a link": ("replicate add x http://localhost:1 --interval inf", "604800"),
    "seconds of a copy": ("import --from-confluent http://localhost:1 --follow --interval inf", "604800"),
}


@pytest.mark.parametrize(("words", "limit"), CASES.values(), ids=CASES.keys())
def test_one_line(annals: Annals, words: str, limit: str) -> None:
    ended = annals(*words.split())
    assert (ended.code, ended.out, ended.err.count("\n")) == (ExitCode.USAGE, "", 1)
    assert ended.err.startswith("annals: invalid value for '") and limit in ended.err


@pytest.mark.parametrize("value", ["inf", "nan", "1e300", "86401"])
def test_seconds_of_checks_that_no_timer_can_wait(annals: Annals, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("ANNALS_CHECK_SECONDS", value)
    ended = annals("serve", "--port", "0")
    assert (ended.code, ended.err.count("\n")) == (ExitCode.USAGE, 1)
    assert ended.err.startswith("annals: ANNALS_CHECK_SECONDS: Input should be ")


@pytest.mark.parametrize("value", [str(2**43), NINES])
def test_memory_of_checks_that_no_limit_can_be(annals: Annals, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("ANNALS_CHECK_MEMORY", value)
    ended = annals("serve", "--port", "0")
    assert (ended.code, ended.err.count("\n")) == (ExitCode.USAGE, 1)
    assert ended.err == "annals: ANNALS_CHECK_MEMORY: Input should be less than or equal to 1073741824\n"
