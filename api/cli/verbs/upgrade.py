"""`annals upgrade`: upgrades the store of an older release."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import typer

from annals.api.cli.options import Database, load_settings, require_store
from annals.api.cli.outcome import StoreError
from annals.api.cli.progress import work_progress

Quick = Annotated[
    bool,
    typer.Option("--quick", help="Only do what a start of the server does; what is uncompressed stays so."),
]


def upgrade(quick: Quick = False, database: Database = None) -> None:
    """Upgrade the store of an older release, with its history, to this one.

    Stop the processes of the older release first. Starting a server also upgrades its store, except that it leaves old
    events and documents uncompressed: this verb compresses them, while servers run. An interrupted upgrade continues
    where it stopped.

    Example: annals upgrade --database sqlite:///trial.db
    """
    from annals.api.registry.open_registry import create_read_model
    from annals.commands.store.compression.log_compression import compress_documents, compress_log
    from annals.commands.store.database.tables import SCHEMA
    from annals.commands.store.log import Store
    from annals.projections.entities.apply import EntityProjection
    from annals.projections.entities.rebuild import RebuildDiverged, rebuild_if_stale

    settings = require_store(load_settings(database=database))
    with closing(Store(settings.database)) as store, work_progress() as work:
        store.create(lambda step: typer.echo(f"schema {step.schema}: {step.name}"))
        create_read_model(store, EntityProjection(max_leaves=settings.indexed_leaves))
        try:
            rebuilt = rebuild_if_stale(store, settings.indexed_leaves, work.step("applied", "events"))
        except RebuildDiverged as error:
            raise StoreError(f"{error}. `annals log verify` says what is wrong.") from error
        if rebuilt:
            typer.echo(f"read model: rebuilt from {rebuilt.events} events")
        if not quick:
            for compress, what in ((compress_log, "events"), (compress_documents, "documents")):
                report = compress(store, work.step("compressed", what))
                if report.compressed:
                    typer.echo(
                        f"log: {report.compressed} {what} compressed from {report.before} to {report.after} bytes"
                    )
    typer.echo(f"The store has schema {SCHEMA}.")
