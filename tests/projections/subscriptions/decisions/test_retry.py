"""The next step after an outcome, the token bucket that limits requests, and sequences."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from annals.projections.subscriptions.contract import DeliveryResult, Outcome
from annals.projections.subscriptions.decisions.retry import NextStep, RetryPolicy, decide_retry
from annals.projections.subscriptions.decisions.token_bucket import UNVALIDATED_LIMIT, TokenBucket
from annals.projections.subscriptions.sequence import (
    last_sequence,
    parse_sequence,
    position_of,
    sequence_of,
    sequence_text,
)

NOW = 1_800_000_000.0
ROWS = yaml.load((Path(__file__).parent / "retries.yaml").read_text(), yaml.CSafeLoader)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['rule']}, {row['outcome']} {row.get('attempts', 1)}")
def test_what_follows(row: dict[str, Any]) -> None:
    # SUB-821, 8.3: see retries.yaml
    until = datetime.fromtimestamp(NOW + row["until"], UTC) if "until" in row else None
    outcome = Outcome(DeliveryResult(row["outcome"]), retry_at=until)
    retries = RetryPolicy.from_settings({"retry": row.get("retry")})
    found = decide_retry(outcome, row.get("attempts", 1), NOW - row.get("age", 0), retries, NOW, row.get("chance", 1.0))
    assert found.next_step is NextStep(row["next"])
    assert found.counts_as_attempt is row.get("counts", True)
    assert found.reason == row.get("reason", "")
    if found.next_step is NextStep.RETRY:
        assert found.time - NOW == pytest.approx(row["after"])


@given(st.lists(st.floats(0, 120), min_size=1, max_size=200), st.integers(1, 600))
def test_no_minute_has_more_than_its_rate(pauses: list[float], rate: int) -> None:
    # SUB-713: in any minute, the requests exceed the rate by a second's worth at most, whatever the pauses
    bucket, now, taken = TokenBucket.full(rate, NOW), NOW, []
    for pause in pauses:
        now += pause
        while bucket.seconds_until_token(now) == 0:
            bucket = TokenBucket(*list(bucket.without_token(now)))  # as after a restart
            taken.append(now)
    for first in taken:
        assert sum(first <= each < first + 60 for each in taken) <= rate + max(1.0, rate / 60) + 1


def test_a_bucket_under_another_rate() -> None:
    # SUB-711, 713: another rate gives no used token back
    rate, most = UNVALIDATED_LIMIT
    bucket = TokenBucket.full(rate, NOW, most)
    for _ in range(20):
        assert bucket.seconds_until_token(NOW) == 0
        bucket = bucket.without_token(NOW)
    assert bucket.seconds_until_token(NOW) == pytest.approx(6)
    assert bucket.with_rate(60, NOW).seconds_until_token(NOW) == pytest.approx(1)
    assert bucket.seconds_until_token(NOW - 3600) == pytest.approx(
        6
    )  # a clock that was set back adds no token, and removes none


@given(st.integers(1, 1 << 50), st.integers(0, 99), st.integers(1, 1 << 50), st.integers(0, 99))
def test_sequences_sort_as_the_log(position: int, index: int, other: int, another: int) -> None:
    # SUB-113: 20 digits, a dot, two digits; texts sort like positions
    one, two = sequence_of(position, index), sequence_of(other, another)
    assert (sequence_text(one) < sequence_text(two)) == ((position, index) < (other, another))
    assert parse_sequence(sequence_text(one)) == one
    assert position_of(one) == position
    assert one <= last_sequence(position) < sequence_of(position + 1, 0)


@pytest.mark.parametrize(
    "given", ["", "1", "1.00", "00000000000000000001.0", "99999999999999999999.00", "x" * 20 + ".00"]
)
def test_what_is_no_sequence(given: str) -> None:
    # SUB-113
    assert parse_sequence(given) is None
