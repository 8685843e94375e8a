from __future__ import annotations

from commands.correlation import Ulids


def test_ten_thousand_ids_differ_ignoring_case() -> None:
    """EV-25, EV-26: distinct after case folding, because the alphabet has one case."""
    new_id = Ulids()
    ids = [new_id() for _ in range(10_000)]
    assert len({one.casefold() for one in ids}) == 10_000
    assert all(one == one.lower() and len(one) == 26 for one in ids)


def test_ids_sort_as_they_were_made() -> None:
    """Also within a millisecond and while the clock runs backwards."""
    ticks = iter([5, 5, 5, 3, 4, 6, 2])
    new_id = Ulids(lambda: next(ticks))
    ids = [new_id() for _ in range(7)]
    assert ids == sorted(set(ids))
