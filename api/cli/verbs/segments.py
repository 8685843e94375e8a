"""`annals segments`: writes and verifies the log as Parquet files, for bulk readers."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Final

import typer

from annals.api.cli.options import MAX_COUNT, Database, load_console_settings, load_settings, require_store
from annals.api.cli.outcome import InvalidInput, StoreError, UsageError, findings_text
from annals.api.cli.progress import work_progress
from annals.api.cli.tables import Column, print_rows

if TYPE_CHECKING:
    from annals.projections.segments.folder import SegmentFolder

segments: Final = typer.Typer(
    help="Maintain the log as Parquet files for bulk readers; docs/guides/segments.md describes the layout.",
)

FolderOption = Annotated[
    str | None,
    typer.Option(
        "--folder",
        envvar="ANNALS_SEGMENTS",
        metavar="URI",
        help="Folder of the segments: a path, or a URI with file:, s3:, s3a: or hdfs:.",
    ),
]
Events = Annotated[
    int, typer.Option(min=1, max=MAX_COUNT, help="Events in a segment; the last interaction is complete.")
]
Group = Annotated[int, typer.Option(min=1, max=MAX_COUNT, help="Rows in a row group; determines the memory use.")]
Full = Annotated[bool, typer.Option("--full", help="Do not write the end of the log until it fills a segment.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object per line, as in the manifest.")]

_SEGMENT_COLUMNS: Final = (
    Column(19, "cyan"),
    Column(19, "cyan"),
    Column(9),
    Column(9),
    Column(12),
    Column(9),
    Column(),
)
_FINDING_COLUMNS: Final = (Column(style="red"),)
_OTHER_LOG_REMEDY: Final = "each log needs a folder of its own."
_DAMAGE_REMEDY: Final = (
    "remove what is damaged, and its entries in manifest/; annals segments write writes them again. In an archive,"
    " restore them from a backup instead: the database no longer has them."
)


@segments.command()
def write(
    folder: FolderOption = None,
    events: Events = 100_000,
    group: Group = 20_000,
    full: Full = False,
    database: Database = None,
) -> None:
    """Write the part of the log after the last segment. You can stop and repeat the command at any time.

    It refuses a folder with the log of another registry.

    Example: annals segments write --folder s3://lake/annals?region=eu-central-1
    """
    settings = require_store(load_settings(database=database))
    with _open_folder(folder) as segment_folder:
        from annals.projections.segments.write import SegmentSize, append_segments

        with work_progress() as work:
            size = SegmentSize(events, group, full)
            result = append_segments(settings.database, segment_folder, size, work.step("wrote", "events"))
    typer.echo(f"{result.segments} segments with {result.events} events; they end at position {result.last}")


@segments.command(name="list")
def list_(folder: FolderOption = None, as_json: AsJson = False) -> None:
    """Print the segments: first and last position, events, interactions, bytes, documents and file, with tabs."""
    with _open_folder(folder) as segment_folder:
        for entry in segment_folder.entries(segment_folder.unbroken_ranges()):
            if as_json:
                typer.echo(entry.model_dump_json())
                continue
            size, document_rows = (
                sum(file.bytes for file in entry.files),
                entry.documents.rows if entry.documents else 0,
            )
            row = (entry.first, entry.last, entry.events, entry.interactions, size, document_rows, entry.log.path)
            print_rows(_SEGMENT_COLUMNS, [row])


@segments.command()
def verify(folder: FolderOption = None, database: Database = None) -> None:
    """Verify the segments from their files alone: hashes of files and documents, the chain, every position.

    Prints each finding with its position. With --database, the command also compares them with that store. Exit code 0
    means no findings, 3 means that there are no segments, or damaged ones, or those of another log.

    Example: annals segments verify --folder /var/lib/annals/segments --database sqlite:///annals.db
    """
    settings = require_store(load_settings(database=database)) if database else None
    with _open_folder(folder) as segment_folder:
        from annals.projections.segments.verify import compare_with_store, verify_segments

        with work_progress() as work:
            damages = [*verify_segments(segment_folder, work.step("verified", "events"))]
            findings = [*damages, *(compare_with_store(segment_folder, settings.database) if settings else ())]
        print_rows(_FINDING_COLUMNS, ((f"position {finding.position}: {finding.text}",) for finding in findings))
        if findings:
            # Intact segments with another log are good ones of another registry, which must stay.
            remedy = _DAMAGE_REMEDY if damages else _OTHER_LOG_REMEDY
            raise StoreError(f"{findings_text(len(findings))}; {remedy}")
        last_entry = segment_folder.entry(segment_folder.unbroken_ranges()[-1])
    typer.echo(f"{last_entry.last} events, no findings. chain {last_entry.chain}")


@contextmanager
def _open_folder(option: str | None) -> Iterator[SegmentFolder]:
    """The folder of the option or of the settings, with its errors turned into errors of the command line."""
    require_segments()
    from annals.projections.segments.folder import open_folder

    if (uri := option or load_console_settings().segments) is None:
        raise UsageError("--folder or ANNALS_SEGMENTS is needed: the folder of the segments.")
    try:
        folder = open_folder(uri)
    except (OSError, ValueError) as error:
        raise UsageError(f"this cannot be a folder of segments: {_first_line(error)}.") from None
    with segment_errors(folder.name):
        yield folder


def require_segments() -> None:
    """Raises: UsageError unless the packages for segments are installed."""
    try:
        import_module("annals.projections.segments.folder")
    except ImportError as error:
        command = shlex.join((sys.executable, "-m", "pip", "install", "pyarrow"))
        raise UsageError(f"{error}; segments and archives need pyarrow; install it with: {command}") from None


@contextmanager
def segment_errors(folder: str) -> Iterator[None]:
    """Turns errors of segments into errors of the command line. folder: its name."""
    from annals.projections.segments.folder import ConcurrentWriteError, MissingSegment, NoSegments
    from annals.projections.segments.log_agreement import SegmentsMismatch
    from annals.projections.segments.manifest import UnreadableManifestEntry
    from annals.projections.segments.write import DamagedLog, DamagedSegment

    try:
        yield
    except SegmentsMismatch as error:
        raise InvalidInput(f"{error}; {_OTHER_LOG_REMEDY}") from error
    except ConcurrentWriteError as error:
        raise InvalidInput(f"another process has written {error} meanwhile; start again to go on.") from error
    except NoSegments as error:
        raise StoreError(f"{error}.") from error
    except (MissingSegment, UnreadableManifestEntry) as error:
        raise StoreError(f"{folder}: {error}.") from error
    except DamagedSegment as error:
        reason = _first_line(error).rstrip(".")
        raise StoreError(f"{folder}: a segment is damaged: {reason}; annals segments verify says which.") from error
    except DamagedLog as error:
        raise StoreError(f"the log is damaged, {error}. annals log verify says more.") from error
    except BrokenPipeError:
        raise  # the reader of the pipe has closed it
    except OSError as error:
        raise UsageError(f"{folder} cannot be read or written: {_first_line(error)}.") from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
