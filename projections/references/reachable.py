"""The references that lead on from an entity over several others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from annals.projections.references.reference import Reference, ReferenceState

#: The maximum number of references that are followed from one entity, so that a request has a bounded cost.
MAX_REACHABLE: Final = 1000


class ReachedReference(NamedTuple):
    """A reference and its distance: 1 for those of the entity itself."""

    reference: Reference
    depth: int


def reachable(
    start: str, depth: int, references_of: Callable[[str], Iterable[Reference]], *, forwards: bool
) -> Iterator[ReachedReference]:
    """The references within a distance of an entity, the nearest first; each entity is visited once.

    forwards: references are followed to their targets, else back to their sources. Ends after `MAX_REACHABLE`.
    """
    visited, level, count = {start}, [start], 0
    for distance in range(1, depth + 1):
        next_level: list[str] = []
        for entity in level:
            for reference in references_of(entity):
                yield ReachedReference(reference, distance)
                count += 1
                if count >= MAX_REACHABLE:
                    return
                end = reference.target if forwards else reference.source
                if reference.state is ReferenceState.RESOLVED and end not in visited:
                    visited.add(end)
                    next_level.append(end)
        level = next_level
