from __future__ import annotations

from annals.commands.store.correlation_ids import UlidGenerator


def test_ten_thousand_ids_differ_ignoring_case() -> None:
    """EV-25, EV-26: distinct after case folding, because the alphabet has one case."""
    new_id = UlidGenerator()
    ids = [new_id() for _ in range(10_000)]
    assert len({one.casefold() for one in ids}) == 10_000
    assert all(one == one.lower() and len(one) == 26 for one in ids)


def test_ids_sort_as_they_were_made() -> None:
    """Also within a millisecond and while the clock runs backwards."""
    ticks = iter([5, 5, 5, 3, 4, 6, 2])
    new_id = UlidGenerator(lambda: next(ticks))
    ids = [new_id() for _ in range(7)]
    assert ids == sorted(set(ids))


def test_an_id_sorts_after_the_last_one_of_the_log() -> None:
    """EV-25: even if the clock is behind that id; an id that is not a ULID is ignored."""
    ids = ["7zzzzzzzzz0123456789abcdef", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "", "c7", "8zzzzzzzzz0123456789abcdef"]
    later = [UlidGenerator(lambda: 5)(id) for id in ids]
    assert [one > id.casefold() for one, id in zip(later[:2], ids, strict=False)] == [True, True]
    assert all(one.startswith("0000000005") for one in later[2:])


def test_two_registries_that_go_on_from_one_id_make_different_ones() -> None:
    """EV-25: a registry and its copy continue from the same last id, and their clocks may be behind it."""
    last = UlidGenerator(lambda: 9)()
    ids = [UlidGenerator(lambda: 5)(last) for _ in range(1000)]
    assert len(set(ids)) == 1000 and min(ids) > last
