"""Maximum matchings, by augmenting paths: which parts of one combination stand for which parts of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def maximum_matching(candidates: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """A largest choice of one candidate for each key, none twice. O(keys × candidates)."""
    holders: dict[int, int] = {}

    def assign(key: int, tried: set[int]) -> bool:
        for candidate in candidates[key]:
            if candidate in tried:
                continue
            tried.add(candidate)
            if candidate not in holders or assign(holders[candidate], tried):
                holders[candidate] = key
                return True
        return False

    for key in candidates:
        assign(key, set())
    return {key: candidate for candidate, key in sorted(holders.items(), key=lambda pair: pair[1])}
