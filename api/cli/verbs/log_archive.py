"""`annals log archive` and `annals log unarchive`: move old parts of the log to an archive, and back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from annals.api.cli.options import MAX_COUNT, Database, load_settings, require_moment, require_store
from annals.api.cli.outcome import InvalidInput, StoreError, UsageError, findings_text
from annals.api.cli.progress import WorkProgress, work_progress
from annals.api.cli.verbs.segments import require_segments, segment_errors
from annals.commands.store.log import Store
from annals.projections.database.drivers import database_of
from annals.projections.log.reader import Log

if TYPE_CHECKING:
    from annals.projections.segments.archive import StartStep

_NO_ARCHIVE: Final = "no archive"

Before = Annotated[
    str | None,
    typer.Option(
        "--before",
        metavar="MOMENT",
        callback=require_moment,
        help="Archive what ended before this: a position, a time or a correlation id.",
    ),
]
To = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="URI",
        help="Place of the archive, needed once: a folder for segments, as of annals segments.",
    ),
]
MovedTo = Annotated[
    str | None, typer.Option("--moved-to", metavar="URI", help="Record that the files of the archive are here now.")
]
Events = Annotated[
    int, typer.Option(min=1, max=MAX_COUNT, help="Events in a new segment; the last interaction is complete.")
]
Group = Annotated[int, typer.Option(min=1, max=MAX_COUNT, help="Rows in a row group: what is read for one old event.")]


def archive(
    before: Before = None,
    to: To = None,
    moved_to: MovedTo = None,
    events: Events = 20_000,
    group: Group = 1000,
    database: Database = None,
) -> None:
    """Move the old part of the log to segments in a folder or an object store; without options, print the archive.

    It writes segments, reads them back and verifies them; only then it removes the states of these events from the
    database. Current states and events of subscriptions and links stay. Servers may run, and an interrupted command can
    be repeated. Afterwards, reads of the past need the archive. docs/guides/archive.md says more.

    Example: annals log archive --before 2026-01-01T00:00:00Z --to s3://bucket/annals?region=eu-central-1
    """
    with _open(database) as (store, url):
        from annals.projections.segments import archive as archives
        from annals.projections.segments.write import SegmentSize

        status = archives.archive_status(store)
        with work_progress() as work:
            if moved_to is not None:
                _require_alone("--moved-to", before, to)
                place = _place(moved_to)
                archives.move_archive(store, place, work.step("read", "events"))
                typer.echo(f"the archive is {place}")
            elif before is not None:
                archive_place = _place(to) if to else status.place
                if archive_place is None:
                    raise UsageError("--to is needed: the place of the archive.")
                until = _last_before(store, before)
                summary = archives.archive_log(
                    store, url, archive_place, until, _steps(work), SegmentSize(events, group)
                )
                typer.echo(
                    f"{summary.segments} new segments; {summary.states} states moved; positions 1 to {summary.last} are"
                    f" in {archive_place}"
                )
            elif to is not None:
                raise UsageError("--before is needed: a position, a time or a correlation id.")
            elif status.place is None:
                typer.echo(_NO_ARCHIVE)
            else:
                size = sum(segment.bytes for segment in status.segments)
                typer.echo(
                    f"{len(status.segments)} segments, {size} bytes: positions 1 to {status.last}, {status.place}"
                )


def unarchive(database: Database = None) -> None:
    """Move everything in the archive back into the database, and forget the archive. Its files stay.

    It proves the chain of all events before it changes anything. An interrupted command can be repeated.

    Example: annals log unarchive
    """
    with _open(database) as (store, _):
        from annals.projections.segments import archive as archives

        if (place := archives.archive_status(store).place) is None:
            typer.echo(_NO_ARCHIVE)
            return
        with work_progress() as work:
            states = archives.unarchive_log(store, _steps(work))
        typer.echo(f"{states} states moved back; the files in {place} are no longer needed")


@contextmanager
def _open(database: str | None) -> Iterator[tuple[Store, str]]:
    """The store of the settings and its URL, with errors of archives turned into errors of the command line."""
    require_segments()
    settings = require_store(load_settings(database=database))
    with closing(Store(settings.database)) as store:
        store.require_current()
        with segment_errors("the archive"):
            from annals.commands.store.archive.move_states import ArchiveChanged
            from annals.projections.segments.archive import OtherArchive, UnverifiedSegments

            try:
                yield store, settings.database
            except OtherArchive as error:
                reason = "annals log unarchive removes it; --moved-to names another place of the same files"
                raise InvalidInput(f"{error}; {reason}.") from error
            except ArchiveChanged as error:
                raise InvalidInput(f"{error}.") from error
            except UnverifiedSegments as error:
                first = error.findings[0]
                raise StoreError(
                    f"{findings_text(len(error.findings))}, the first at position {first.position}: {first.text}."
                    " The database keeps everything."
                ) from error


def _place(uri: str) -> str:
    from annals.projections.segments.archive import absolute_place

    try:
        return absolute_place(uri)
    except (OSError, ValueError) as error:
        raise UsageError(f"this cannot be the place of an archive: {str(error).partition(chr(10))[0]}.") from None


def _steps(work: WorkProgress) -> StartStep:
    return lambda done_word: work.step(done_word, "events")


def _require_alone(option: str, *others: str | None) -> None:
    if any(other is not None for other in others):
        raise UsageError(f"{option} goes with no other option of the archive.")


def _last_before(store: Store, moment: str) -> int:
    """The end of the last interaction before a moment. Raises: BadRequest; InvalidInput when there is none."""
    with store.engine.begin() as connection:
        interaction = Log(database_of(connection)).before(moment, store.clock(), "before")
    if not interaction.last:
        raise InvalidInput(f"--before {moment}: nothing of the log ended before it.")
    return interaction.last
