"""The manifest entries of segments: one small JSON file for each, written last and never changed."""

from __future__ import annotations

import re
from typing import Final, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from annals.projections.log.table_rows import KNOWN_VERSIONS

# As many digits as the largest position has, so that names sort by position.
_NAME: Final = re.compile(r"([0-9]{19})-([0-9]{19})\b")


class UnreadableManifestEntry(Exception):
    """A manifest entry that this program cannot read: damaged, or of another schema version."""


class SegmentRange(NamedTuple):
    """The positions of a segment, both inclusive."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.first:019}-{self.last:019}"

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """The range at the start of a file's name; None for a file that is not a segment's."""
        match = _NAME.match(name)
        return cls(int(match[1]), int(match[2])) if match else None


class DataFile(BaseModel):
    """A Parquet file.

    path: relative to the folder. rows, bytes: counts. sha256: of all its bytes, in lower-case hex.
    """

    model_config = ConfigDict(frozen=True)

    path: str
    rows: int
    bytes: int
    sha256: str


class ManifestEntry(BaseModel):
    """One segment.

    first, last: its positions. events, interactions: counts. previous, chain: chain hashes before its first and after
    its last event. statehash: after its last event. log: the events. documents: those that its events refer to and no
    earlier segment has; None if there are none. All hashes in lower-case hex.
    """

    model_config = ConfigDict(frozen=True)

    schemaversion: int
    first: int
    last: int
    events: int
    interactions: int
    previous: str
    chain: str
    statehash: str
    log: DataFile
    documents: DataFile | None = None

    @property
    def range(self) -> SegmentRange:
        """Its positions."""
        return SegmentRange(self.first, self.last)

    @property
    def files(self) -> tuple[DataFile, ...]:
        """Its data files."""
        return (self.log, self.documents) if self.documents else (self.log,)


class _Versioned(BaseModel):
    schemaversion: int


def parse_entry(text: bytes, name: str) -> ManifestEntry:
    """The manifest entry in a file. name: for the message.

    Raises: UnreadableManifestEntry.
    """
    try:
        version = _Versioned.model_validate_json(text).schemaversion
        if version not in KNOWN_VERSIONS:
            known_versions = " and ".join(map(str, KNOWN_VERSIONS))
            raise UnreadableManifestEntry(
                f"{name} has schema version {version}, but this program knows {known_versions}"
            )
        return ManifestEntry.model_validate_json(text)
    except ValidationError as error:
        first_error = error.errors(include_url=False, include_input=False)[0]
        location = ".".join(map(str, first_error["loc"]))
        raise UnreadableManifestEntry(
            f"{name} is not an entry of a manifest: {location} {first_error['msg']}"
        ) from None
