"""What counts in a folder of live tables: a small file for each micro-batch, the newest of which is in force."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from pydantic import BaseModel, ValidationError


class LiveTablesError(ValueError):
    """The folder and the stream do not belong together; the message says why, and what to do."""


class Run(NamedTuple):
    """Rows that were written together. folder: of Parquet files, below the folder of all."""

    folder: str
    rows: int


class Manifest(BaseModel, frozen=True):
    """A whole position of the log.

    number: 1, 2, 3 … of the manifests in a folder. position: of the log, after which nothing is in the tables, and
    chain: its hash there, in hex. query, batch: the stream that wrote it, as its checkpoint names it, and which of its
    micro-batches. states: the last event of each stream, entities and changes: the tables, all of them oldest run
    first. held: events beyond the position. retired: folders that earlier manifests named, with the time in seconds
    since 1970 from which they did no longer count.
    """

    format: Literal[1] = 1
    number: int = 0
    position: int = 0
    chain: str = ""
    query: str = ""
    batch: int = -1
    states: tuple[Run, ...] = ()
    entities: tuple[Run, ...] = ()
    changes: tuple[Run, ...] = ()
    held: tuple[Run, ...] = ()
    retired: dict[str, float] = {}

    def folders(self) -> set[str]:
        """Those of all runs that count."""
        return {run.folder for runs in (self.states, self.entities, self.changes, self.held) for run in runs}

    def after(self, before: Manifest, now: float, keep: float) -> Manifest:
        """The same as the next one, with what it leaves out retired. keep: seconds for which retired files stay."""
        young = {folder: since for folder, since in before.retired.items() if since > now - keep}
        gone = dict.fromkeys(sorted(before.folders() - self.folders()), now)
        return self.model_copy(update={"number": before.number + 1, "retired": young | gone})


#: Of a folder without any.
EMPTY_MANIFEST: Final = Manifest()


def parse_manifest(text: bytes, place: str) -> Manifest:
    """The manifest of a file. Raises: Refused for one that a newer program wrote, or nobody."""
    try:
        return Manifest.model_validate_json(text)
    except ValidationError as error:
        raise LiveTablesError(f"{place} is no manifest that this program reads: {error.errors()[0]['msg']}") from None
