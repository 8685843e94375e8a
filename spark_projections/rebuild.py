"""A rebuild of the read model whose rows Spark works out, from any source of the log."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from commands.log import Store
from projections.entities import rebuild as rebuilding
from spark_projections.load import computed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rebuild(
    store: Store,
    log: DataFrame,
    asof: int | None = None,
    stage: str | None = None,
    progress: rebuilding.Progress | None = None,
) -> rebuilding.Report:
    """Replaces the read model's tables by what Spark makes of a log, caught up with the store's own.

    log: of this store, from position 1 on; whole interactions. asof: Spark's part ends at or before this position, the
    single process does the rest. stage: URI of a folder that is not there yet, which Spark's workers and this process
    reach; a local one, which is removed again, unless given.
    Raises: as `projections.entities.rebuild.rebuild`; Diverged for the log of another store, or one with gaps.
    """
    if asof is not None:
        log = log.where(log.last <= asof)
    end = log.agg(f.max("last")).collect()[0][0] or 0
    with _staged(stage) as folder:
        return rebuilding.rebuild(store, progress, computed(log, end, folder))


@contextmanager
def _staged(stage: str | None) -> Iterator[str]:
    if stage is not None:
        yield stage.rstrip("/")
        return
    folder = tempfile.mkdtemp(prefix="annals-rebuild-")
    try:
        yield (Path(folder) / "stage").as_uri()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
