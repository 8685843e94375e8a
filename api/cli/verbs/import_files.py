"""`annals import`: imports xRegistry documents from files."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from concurrent.futures import CancelledError, wait
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Final

import typer

from annals.api.cli.confluent_copies.copy_options import (
    NO_COPY_OPTIONS,
    CopyOptions,
    ImportRequest,
    refuse_copy_options,
    with_copy_options,
)
from annals.api.cli.document_files import DocumentFile, DocumentKind, import_command, read_document_file
from annals.api.cli.open_registry import open_local_registry
from annals.api.cli.options import MAX_SECONDS, Database, PublicUrl, load_settings, require_other_file
from annals.api.cli.outcome import Interrupted, InvalidInput, UsageError, problem_line
from annals.api.cli.progress import WorkProgress, work_progress
from annals.api.cli.stop_signals import stop_event
from annals.domain.access.roles import CONSOLE
from annals.domain.decisions.phases import Phase
from annals.domain.errors.problems import Problem
from annals.domain.messaging.rc2 import DIALECTS, DialectMismatch
from annals.domain.values import xid as xids
from annals.domain.values.json_text import InvalidJson, loads

if TYPE_CHECKING:
    from annals.api.registry.open_registry import Registry
    from annals.api.settings.settings import Settings
    from annals.commands.command_bus import CommandBus
    from annals.commands.store.log import Store
    from annals.commands.store.write_transaction import Recorded
    from annals.domain.decisions.commands import Command
    from annals.domain.registry.entities import Attributes

Files = Annotated[
    list[Path] | None,
    typer.Argument(metavar="FILE...", exists=True, dir_okay=False, readable=True, help="JSON documents."),
]
KindOption = Annotated[
    DocumentKind | None, typer.Option("--as", help="Kind of the files; default: detected by content.")
]


Dialect = Annotated[str | None, typer.Option(help=f"Older format of the files: {', '.join(DIALECTS)}.")]

FromConfluent = Annotated[
    str | None,
    typer.Option("--from-confluent", metavar="URL", help="Copy schemas of the registry whose API is at this URL."),
]
FromTopic = Annotated[
    str | None,
    typer.Option("--from-schemas-topic", metavar="TOPIC", help="Copy schemas from this topic, mostly _schemas."),
]
FromDump = Annotated[
    Path | None,
    typer.Option(
        "--from-schemas-dump",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="Copy schemas from records of such a topic: JSON lines with key and value, or with a tab between them.",
    ),
]
Brokers = Annotated[
    str | None, typer.Option("--kafka", metavar="HOST:PORT,...", help="Bootstrap servers of --from-schemas-topic.")
]
FollowOption = Annotated[
    bool, typer.Option("--follow", help="Copy again and again until Ctrl-C or SIGTERM, deletions included.")
]
Interval = Annotated[
    float | None,
    typer.Option("--interval", min=0.1, max=MAX_SECONDS, help="Seconds between two copies of --follow; default: 5."),
]
Server = Annotated[
    str | None,
    typer.Option("--server", metavar="URL", help="Copy through the registry served at this URL, not into a store."),
]

#: Seconds between two copies of --follow.
_INTERVAL: Final = 5.0
#: Seconds between two looks at whether Ctrl-C was pressed.
_POLL_SECONDS: Final = 0.1
#: What each phase of an import counts.
_UNITS: Final[dict[Phase, str]] = {
    "checked": "documents",
    "validated": "entities",
    "built": "events",
    "recorded": "events",
    "indexed": "events",
}


@with_copy_options
def import_(
    files: Files = None,
    as_: KindOption = None,
    dialect: Dialect = None,
    database: Database = None,
    public_url: PublicUrl = None,
    from_confluent: FromConfluent = None,
    from_schemas_topic: FromTopic = None,
    from_schemas_dump: FromDump = None,
    kafka: Brokers = None,
    copy: CopyOptions = NO_COPY_OPTIONS,
    follow: FollowOption = False,
    interval: Interval = None,
    server: Server = None,
) -> None:
    """Import xRegistry documents into the registry, in the given order; or copy another schema registry.

    A file is a modelsource (types under `groups`) or a registry document: collections of Groups, optionally with
    attributes of the registry. The import adds and updates entities, and removes nothing. Each file is imported
    completely or not at all. The first refused file ends the import. Files in a dialect are registry documents or maps
    of endpoints; the import converts them and reports the changes on stderr.

    --from-confluent copies contexts, subjects, versions with their ids, soft-deleted ones, configs and modes of a
    registry with the API of Confluent Schema Registry. --from-schemas-topic and --from-schemas-dump read the records in
    which such a registry keeps them. What is here stays as it is; a second copy does what is missing.

    Example: annals import --from-confluent https://registry.example:8081 --report copied.jsonl
    """
    request = ImportRequest(from_confluent, from_schemas_topic, from_schemas_dump, kafka, server)
    if request.sources:
        if files or as_ or dialect:
            raise UsageError("documents, --as and --dialect belong to another import than copies.")
        _check_copy(request, database or public_url, follow, interval)
        settings = load_settings(database=database, public_url=public_url)
        require_other_file(copy.report, settings, from_schemas_dump, copy.secret_file, copy.ca)
        from annals.api.cli.confluent_copies.import_verb import import_schemas  # late, because files need no clients

        import_schemas(request, settings, copy, (interval or _INTERVAL) if follow else None)
        return
    others = {
        "--kafka": kafka is not None,
        "--follow": follow,
        "--interval": interval is not None,
        "--server": server is not None,
    }
    refuse_copy_options(
        copy, others, "name their source with --from-confluent, --from-schemas-topic or --from-schemas-dump"
    )
    if not files:
        raise typer.BadParameter("name documents, or a registry with --from-confluent.", param_hint="'FILE...'")
    settings = load_settings(database=database, public_url=public_url)
    _import_files([_translate_file(file, dialect) if dialect else _read_file(file, as_) for file in files], settings)


def _check_copy(request: ImportRequest, store: str | None, follow: bool, interval: float | None) -> None:
    """Checks that the options of a copy fit each other. store: an option that names a store. Raises: UsageError."""
    if len(request.sources) > 1:
        raise UsageError("copies have one source.")
    if (request.topic is not None) != (request.brokers is not None):
        raise UsageError("--from-schemas-topic and --kafka belong together.")
    if request.server is not None and store:
        raise UsageError("--server: the server knows its own store; leave out --database and --public-url.")
    if interval is not None and not follow:
        raise UsageError("--interval: only with --follow, which copies again and again.")


def _import_files(document_files: Sequence[DocumentFile], settings: Settings) -> None:
    with (
        open_local_registry(settings) as registry,
        work_progress() as work,
        stop_event([signal.SIGINT]) as stop,
    ):
        for document_file in document_files:
            typer.echo(f"{document_file.path}: {_import_file(registry, document_file, work, stop)}")


def _read_file(file: Path, kind: DocumentKind | None) -> DocumentFile:
    try:
        return read_document_file(file, kind)
    except Problem as problem:
        raise InvalidInput(f"{file}: {problem_line(problem)}") from problem


def _translate_file(file: Path, dialect: str) -> DocumentFile:
    if dialect not in DIALECTS:
        raise UsageError(f"the dialect {dialect!r} is unknown; use one of: {', '.join(DIALECTS)}")
    try:
        translated = DIALECTS[dialect](loads(file.read_bytes()))
    except (InvalidJson, DialectMismatch) as error:
        raise InvalidInput(f"{file}: {error}") from None
    for change in translated.report:
        names = f"{', '.join(change.before)} -> {', '.join(change.after) or 'left out'}"
        typer.echo(f"{file}{change.path}: {names} ({change.reason})", err=True)
    return DocumentFile(file, DocumentKind.REGISTRY, translated.tree)


def _import_file(registry: Registry, document_file: DocumentFile, work: WorkProgress, stop: Event) -> str:
    """The result of importing a document, in words. stop: set by Ctrl-C.

    Raises: InvalidInput; Interrupted if Ctrl-C came in time.
    """
    try:
        command = import_command(document_file, _current_model(registry.store))
        registry.store.load_model()  # so that documents are checked before the command is decided, and it only once
        recorded = record_command(registry.command_bus, command, work, stop) if command else None
    except Problem as problem:
        raise InvalidInput(f"{document_file.path}: {problem_line(problem)}") from problem
    except (_Stopped, CancelledError):
        raise Interrupted(f"{document_file.path}: stopped by Ctrl-C; nothing of this file was recorded.") from None
    if recorded is None or recorded.xregcorrelationid is None:
        return "nothing new"
    return f"{len(recorded.events)} events, {recorded.xregcorrelationid}"


class _Stopped(Exception):
    """Raised inside the transaction of a command, so that it is undone."""


def record_command(command_bus: CommandBus, command: Command, work: WorkProgress, stop: Event) -> Recorded:
    """The result of a command. Once the events are written and only the commit is left, Ctrl-C has no effect.

    Raises: Problem; _Stopped or CancelledError if Ctrl-C came in time.
    """

    def check_wanted(*_: object) -> None:
        if stop.is_set():
            raise _Stopped

    def report_phase(phase: Phase, done: int, total: int) -> None:
        check_wanted()
        work.step(phase, _UNITS[phase])(done, total)

    future = command_bus.submit(command, CONSOLE, check_wanted, report_phase=report_phase)
    while not (future.done() or stop.is_set()):
        wait([future], _POLL_SECONDS)
    if stop.is_set():
        future.cancel()  # has no effect once the command is decided; then `check_wanted` ends it
    return future.result()


def _current_model(store: Store) -> Attributes:
    """The `modelsource` and `model` in force."""
    last_event = store.recorder.select_events(xids.MODEL, desc=True, limit=1)[0]
    attributes: Attributes = store.mapper.to_domain_event(last_event).attributes
    return attributes
