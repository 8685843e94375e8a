"""What the older APIs show: definitions with their numbers, those that are kept, and where URIs lead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from domain.compat.family import Family
from domain.jsontext import Json
from projections.entities.query import View
from projections.entities.rows import Row


class Shown(NamedTuple):
    """A Version as the older APIs show it.

    row: as the read model has it, or had it when it was pruned (`kept`). facade: what only the older APIs know of it.
    uri: its own; relative to the family's base, which the caller puts before it, where it has the default one
    (`/schemagroups/g/schemas/s/versions/1`). id: as given, or that default.
    """

    row: Row
    number: int
    facade: Mapping[str, Json]
    kept: bool
    uri: str
    id: str


class Published:
    """A reader over a view of the read model, of now or of then."""

    def __init__(self, view: View) -> None:
        self._view = view

    def versions(self, xid: str) -> list[Shown]:
        """The Versions of a Resource, living and kept, by ascending number; none where there is no such Resource."""
        raise NotImplementedError

    def version(self, xid: str, number: int) -> Shown | None:
        """The Version of a Resource that has a number."""
        raise NotImplementedError

    def latest(self, xid: str) -> Shown | None:
        """The Version of a Resource with the highest number (LEG-407)."""
        raise NotImplementedError

    def by_uri(self, family: Family, uri: str, bases: Sequence[str]) -> Shown | None:
        """The Version that a URI means: its own, its path or its place in the registry (LEG-608, 609, 610).

        bases: absolute URLs that paths of the family may stand behind.
        """
        raise NotImplementedError
