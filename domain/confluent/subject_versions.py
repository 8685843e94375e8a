"""The versions of one subject, read as far as they are asked for: a subject may have thousands."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Final, Protocol

from annals.domain.confluent.schema_versions import SchemaVersion


class VersionLookups(Protocol):
    """Finds live and soft-deleted versions of one subject. Answers are ordered by number."""

    def all(self) -> Sequence[SchemaVersion]:
        """All of them."""

    def with_number(self, number: int) -> Sequence[SchemaVersion]:
        """Those with a number."""

    def with_key(self, key: str) -> Sequence[SchemaVersion]:
        """Those with a content."""

    def with_key_or_member(self, key: str, names: Collection[str]) -> Sequence[SchemaVersion]:
        """Those with a content, and those with a member of one of some names in their extras; maybe some others."""


#: The number of versions that are looked up one by one before all are read.
_MAX_LOOKUPS: Final = 16


class SubjectVersions:
    """The live and soft-deleted versions of a subject. Answers are ordered by number."""

    def __init__(
        self,
        newest: Sequence[SchemaVersion],
        lookups: VersionLookups | None = None,
        oldest: SchemaVersion | None = None,
    ) -> None:
        """newest: those from some number on, by number; at least one if the subject has any.

        lookups: finds the others; None if there are none. oldest: of the others, the one with the lowest number.
        """
        self.newest = newest
        self.oldest = oldest if oldest is not None else next(iter(newest), None)
        self._lookups = lookups
        self._by_number: dict[int, Sequence[SchemaVersion]] = {}

    def __bool__(self) -> bool:
        return bool(self.newest)

    @cached_property
    def all(self) -> Sequence[SchemaVersion]:
        return self._lookups.all() if self._lookups is not None else self.newest

    @property
    def live(self) -> list[SchemaVersion]:
        """All live ones."""
        return [version for version in self.all if version.is_live]

    @cached_property
    def latest(self) -> SchemaVersion | None:
        """The live one with the highest number."""
        of_newest = next((version for version in reversed(self.newest) if version.is_live), None)
        return of_newest or next((version for version in reversed(self.all) if version.is_live), None)

    @property
    def highest_number(self) -> int:
        """0 if there is no version."""
        return self.newest[-1].number if self.newest else 0

    def with_number(self, number: int) -> Sequence[SchemaVersion]:
        """Those with a number: deleted ones can have that of a live one."""
        if self._lookups is None or number >= self.newest[0].number:
            return [version for version in self.newest if version.number == number]
        if number not in self._by_number:
            if len(self._by_number) >= _MAX_LOOKUPS:
                return [version for version in self.all if version.number == number]
            self._by_number[number] = self._lookups.with_number(number)
        return self._by_number[number]

    def with_key(self, key: str) -> Sequence[SchemaVersion]:
        """Those with a content."""
        if self._lookups is not None:
            return self._lookups.with_key(key)
        return [version for version in self.newest if version.key == key]

    def with_key_or_member(self, key: str, names: Collection[str]) -> Sequence[SchemaVersion]:
        """Those with a content, and those with a member of one of some names in their extras; maybe some others."""
        return self._lookups.with_key_or_member(key, names) if self._lookups is not None else self.newest
