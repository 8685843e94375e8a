"""`annals export`: writes the whole registry as one document."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AbstractContextManager, aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final

import typer

from annals.api.cli.atomic_files import atomic_file
from annals.api.cli.confluent_copies.connections import open_other_registry
from annals.api.cli.confluent_copies.copy_options import (
    NO_COPY_OPTIONS,
    CopyOptions,
    refuse_copy_options,
    with_copy_options,
)
from annals.api.cli.confluent_copies.export_copy import export_copy
from annals.api.cli.options import Database, PublicUrl, load_settings, require_other_file, require_store
from annals.api.cli.outcome import UsageError
from annals.api.cli.progress import ReportProgress, work_progress
from annals.api.cli.setup.notices import print_notice
from annals.api.cli.stop_signals import cleaning_up, interruptible

if TYPE_CHECKING:
    from annals.api.settings.settings import Settings

#: What each schema in a document has; the first chunk with schemas has one whole.
_SCHEMA: Final = b'"schemaid":'
_WITHOUT_IDS: Final = (
    "the document has no ids of schemas, by which Kafka clients know them; `annals import --from-confluent` there, or "
    "`annals export --to-confluent` here, copies schemas with their ids."
)
Output = Annotated[Path | None, typer.Option("--output", "-o", dir_okay=False, help="File to write; default: stdout.")]


Stated = Annotated[bool, typer.Option("--stated", help="Omit values that are defaults of the model.")]


ToConfluent = Annotated[
    str | None,
    typer.Option("--to-confluent", metavar="URL", help="Copy schemas to the registry whose API is at this URL."),
]
Asof = Annotated[str | None, typer.Option("--asof", metavar="WHEN", help="Copy the schemas of a moment in the past.")]
NewIds = Annotated[bool, typer.Option("--new-ids", help="Let the other registry give ids and numbers of its own.")]


@with_copy_options
def export(
    output: Output = None,
    stated: Stated = False,
    database: Database = None,
    public_url: PublicUrl = None,
    to_confluent: ToConfluent = None,
    asof: Asof = None,
    new_ids: NewIds = False,
    copy: CopyOptions = NO_COPY_OPTIONS,
) -> None:
    """Write the registry as one document, the same bytes as GET /export, or with `--stated` GET /export?stated.

    `annals import` imports it into another registry. The file gets its name only when it is complete. The document has
    no ids of schemas, by which Kafka clients know them: --to-confluent copies schemas with their ids to a registry with
    the API of Confluent Schema Registry, and another Annals copies them with `annals import --from-confluent`.

    Example: annals export --to-confluent https://registry.example:8081 --report copied.jsonl
    """
    if to_confluent is not None:
        if output is not None or stated:
            raise UsageError("--to-confluent: --output and --stated belong to the export of a document.")
        settings = load_settings(database=database, public_url=public_url)
        require_other_file(copy.report, settings, copy.secret_file, copy.ca)
        require_store(settings)
        _copy_registry(to_confluent, settings, copy, asof, new_ids=new_ids)
        return
    others = {"--asof": asof is not None, "--new-ids": new_ids}
    refuse_copy_options(copy, others, "name their target with --to-confluent")
    settings = load_settings(database=database, public_url=public_url)
    require_other_file(output, settings)
    require_store(settings)
    path = "/export?stated" if stated else "/export"
    try:
        if output is None:
            _write_stdout(settings, path)
        else:
            _write_file(settings, path, output)
    except BrokenPipeError:
        raise  # the reader of the pipe has closed it
    except OSError as error:
        raise UsageError(f"cannot write {output or 'to stdout'}: {error.strerror or error}.") from None


def _copy_registry(url: str, settings: Settings, copy: CopyOptions, asof: str | None, *, new_ids: bool) -> None:
    from annals.api.cli.confluent_copies.local_api import open_local_api  # late, as above

    with open_other_registry(url, copy, settings) as other, open_local_api(settings) as own:
        export_copy(own, other, copy, asof, new_ids=new_ids)


def _write_stdout(settings: Settings, path: str) -> None:
    if sys.stdout.isatty():  # bars would mix with the document
        asyncio.run(_copy_body(settings, path, sys.stdout.buffer, lambda done, total: None))
        return
    with work_progress() as work:
        asyncio.run(_copy_body(settings, path, sys.stdout.buffer, work.step("exported", "MB")))


def _write_file(settings: Settings, path: str, output: Path) -> None:
    # Devices and pipes are written directly; renaming a file over them would replace them.
    replaces_file = output.is_file() or not output.exists()
    # A symbolic link stays, and its target is replaced.
    opened: AbstractContextManager[BinaryIO] = atomic_file(output.resolve()) if replaces_file else output.open("wb")
    with cleaning_up(), opened as file, work_progress() as work:
        asyncio.run(_copy_body(settings, path, file, work.step("exported", "MB")))


async def _copy_body(settings: Settings, path: str, file: BinaryIO, report: ReportProgress) -> None:
    from annals.api.cli.local_get import get_body  # late, because the help does not need the application

    written, has_schemas = 0, False
    async with aclosing(get_body(settings, path)) as chunks:
        async for chunk in chunks:
            with interruptible():
                file.write(chunk)
            written += len(chunk)
            has_schemas = has_schemas or _SCHEMA in chunk
            report(written // 1_000_000, 0)
    with interruptible():
        file.flush()
    if has_schemas:
        print_notice(_WITHOUT_IDS)
