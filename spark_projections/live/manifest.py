"""The manifest of a live tables folder: one small file per micro-batch; the newest names the valid files."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from pydantic import BaseModel, ValidationError


class LiveTablesError(ValueError):
    """The folder and the stream do not belong together; the message says why, and what to do."""


class Run(NamedTuple):
    """Rows that were written together. folder: their Parquet files, relative to the folder of the tables."""

    folder: str
    rows: int


class Manifest(BaseModel, frozen=True):
    """The valid files of the tables at one position of the log, after a whole interaction.

    number: 1, 2, 3 … in a folder. position: the last log position that the tables contain. chain: the chain hash there,
    in hex. query: id of the stream that wrote it, from its checkpoint. batch: the number of its micro-batch. states:
    the last event of each stream. entities, changes: the tables. All three list the oldest run first. held: events
    after the position. retired: folders of earlier manifests, with the time in seconds since 1970 at which they were
    replaced.
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
        """The folders of all valid runs."""
        return {run.folder for runs in (self.states, self.entities, self.changes, self.held) for run in runs}

    def next_after(self, previous: Manifest, now: float, keep_seconds: float) -> Manifest:
        """This manifest as the successor of another; folders that it drops are retired.

        keep_seconds: seconds to keep those.
        """
        recently_retired = {
            folder: retired_at for folder, retired_at in previous.retired.items() if retired_at > now - keep_seconds
        }
        newly_retired = dict.fromkeys(sorted(previous.folders() - self.folders()), now)
        return self.model_copy(update={"number": previous.number + 1, "retired": recently_retired | newly_retired})


#: The manifest of a folder without one.
EMPTY_MANIFEST: Final = Manifest()


def parse_manifest(text: bytes, path: str) -> Manifest:
    """The manifest in a file. Raises: LiveTablesError for a damaged one, and for one that a newer program wrote."""
    try:
        return Manifest.model_validate_json(text)
    except ValidationError as error:
        raise LiveTablesError(f"{path} is not a manifest that this program reads: {error.errors()[0]['msg']}") from None
