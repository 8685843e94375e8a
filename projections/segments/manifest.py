"""What the manifest says of a segment: one small JSON file for each, written last and never again."""

from __future__ import annotations

import re
from typing import Final, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from projections.log.table_rows import KNOWN_VERSIONS

# As many digits as the greatest position has, so that names sort by position.
_NAME: Final = re.compile(r"([0-9]{19})-([0-9]{19})\b")


class UnreadableManifestEntry(Exception):
    """A manifest entry that this program cannot read: damaged, or of another schema version."""


class SegmentRange(NamedTuple):
    """The positions of a segment, both included."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.first:019}-{self.last:019}"

    @classmethod
    def named(cls, name: str) -> Self | None:
        """The range that a file's name begins with; None for a file of somebody else."""
        found = _NAME.match(name)
        return cls(int(found[1]), int(found[2])) if found else None


class DataFile(BaseModel):
    """A Parquet file. path: from the folder on. rows, bytes: how many. sha256: of all its bytes, in lower-case hex."""

    model_config = ConfigDict(frozen=True)

    path: str
    rows: int
    bytes: int
    sha256: str


class ManifestEntry(BaseModel):
    """One segment.

    first, last: its positions. events, interactions: how many. previous, chain: chain hashes before its first and after
    its last event. statehash: after its last event. log: the events. documents: those that no earlier segment has and
    events of this one refer to; None where there are none. All hashes in lower-case hex.
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
        """All that it consists of."""
        return (self.log, self.documents) if self.documents else (self.log,)


class _Versioned(BaseModel):
    schemaversion: int


def parse_entry(text: bytes, name: str) -> ManifestEntry:
    """The entry of a manifest's file. name: for the message.

    Raises: UnreadableManifestEntry.
    """
    try:
        version = _Versioned.model_validate_json(text).schemaversion
        if version not in KNOWN_VERSIONS:
            known = " and ".join(map(str, KNOWN_VERSIONS))
            raise UnreadableManifestEntry(f"{name} has schema version {version}, this program knows {known}")
        return ManifestEntry.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise UnreadableManifestEntry(f"{name} is no entry of a manifest: {where} {first['msg']}") from None
