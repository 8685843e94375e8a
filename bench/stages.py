"""What one process of the Spark figures does; its last line is a JSON object with seconds by stage.

python -m bench.stages segments FOLDER EVENTS
python -m bench.stages stock DATABASE FOLDER
python -m bench.stages process DATABASE
python -m bench.stages spark DATABASE FOLDER
python -m bench.stages copy FOLDER TABLE
python -m bench.stages prove LAKE
python -m bench.stages read segments|annals|postgres PLACE
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from annals.commands.store.log import Store
from annals.projections.entities.rebuild import Rebuild, rebuild
from annals.projections.segments.folder import open_folder
from bench.histories import URL, write_segments
from bench.stocking import stock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Seconds = dict[str, float]

#: Steps of a rebuild by the stage that they belong to.
_STEPS: Final = {
    "load": "loading",
    "fill_rows": "rows",
    "fill_index": "leaves",
    "fill": "rest of the log",
    "create_indexes": "indexes",
    "verify": "proof",
    "swap": "swap",
}
#: What the columns are that rows are made of: others need not be read.
_READ: Final = ("position", "stream", "revision", "topic", "state")


@contextmanager
def _timed(seconds: Seconds, stage: str) -> Iterator[None]:
    began = time.perf_counter()
    try:
        yield
    finally:
        seconds[stage] = seconds.get(stage, 0.0) + time.perf_counter() - began


def _watch(seconds: Seconds, owner: type, method: str, stage: Callable[..., str]) -> None:
    """Has the time of a method count from now on. stage: its name, from the method's arguments."""
    original = getattr(owner, method)

    def measured(*arguments: Any, **options: Any) -> Any:
        with _timed(seconds, stage(*arguments)):
            return original(*arguments, **options)

    setattr(owner, method, measured)


def _watch_rebuild(seconds: Seconds) -> None:
    for step, stage in _STEPS.items():
        _watch(seconds, Rebuild, step, lambda *arguments, stage=stage: stage)


def segments(folder: str, events: str) -> Seconds:
    """A generated history, as segments."""
    seconds: Seconds = {}
    with _timed(seconds, "all"):
        write_segments(Path(folder), int(events))
    return seconds


def stocked(database: str, folder: str) -> Seconds:
    """The log and the documents of segments, in an empty store."""
    seconds: Seconds = {}
    with closing(Store(database, public_url=URL)) as store, _timed(seconds, "all"):
        stock(store, open_folder(folder))
    return seconds


def process(database: str) -> Seconds:
    """A rebuild by one process."""
    seconds: Seconds = {}
    _watch_rebuild(seconds)
    with closing(Store(database)) as store, _timed(seconds, "all"):
        rebuild(store)
    return seconds


def spark(database: str, folder: str) -> Seconds:
    """A rebuild by Spark from segments, with the start of Spark and, as part of `rows`, reading them."""
    from pyspark.sql import DataFrameWriter

    from annals.spark_projections.read_model import rebuild as sparks
    from annals.spark_projections.session import session
    from annals.spark_projections.sources import segments as source

    seconds: Seconds = {}
    _watch_rebuild(seconds)
    # Each is written to a folder of its name.
    _watch(seconds, DataFrameWriter, "parquet", lambda writer, path, *more: path.rpartition("/")[2])
    with closing(Store(database)) as store, _timed(seconds, "all"):
        with _timed(seconds, "start"):
            spark_session = session(connectors=())
        sparks.rebuild(source.read_verified(spark_session, folder), partial(rebuild, store, None))
    with _timed(seconds, "reading"):
        _read_all(source.read(spark_session, folder).select(*_READ))
    return seconds


def copy(folder: str, table: str) -> Seconds:
    """The log of segments as one Parquet table, by Spark."""
    from annals.spark_projections.session import session
    from annals.spark_projections.sources import segments as source

    seconds: Seconds = {}
    with _timed(seconds, "all"):
        source.read(session(connectors=()), folder).write.parquet(table)
    return seconds


def prove(lake_folder: str) -> Seconds:
    """The state hash of the entities of a lake. Raises: RuntimeError if the log of the lake has another."""
    from annals.spark_projections.lake.append import Lake
    from annals.spark_projections.lake.verify import state_hash
    from annals.spark_projections.session import session

    seconds: Seconds = {}
    with _timed(seconds, "all"):
        lake = Lake(session(connectors=()), "parquet", lake_folder)
        end = lake.head().position
        expected = lake.log(end - 1, end).select("statehash").collect()[0][0]
        if state_hash(lake.table("entities").read()) != bytes(expected):
            raise RuntimeError("the entities are not those of the log")
    return seconds


def read(*places: str) -> Seconds:
    """A whole log taken from sources, every column of it; the second time, when all is warm. Seconds by source.

    places: pairs of a source and where it is.
    """
    from annals.spark_projections.jars import CONNECTORS
    from annals.spark_projections.session import session
    from annals.spark_projections.sources import annals, postgres
    from annals.spark_projections.sources import segments as source

    opening = {"segments": source.read, "annals": annals.read, "postgres": postgres.read}
    kinds, seconds = places[::2], Seconds()
    spark_session = session(connectors=[kind for kind in kinds if kind in CONNECTORS])
    for kind, place in zip(kinds, places[1::2], strict=True):
        open = cast("Callable[..., DataFrame]", opening[kind])
        _read_all(open(spark_session, place))
        with _timed(seconds, kind):
            _read_all(open(spark_session, place))
    return seconds


def _read_all(log: DataFrame) -> None:
    log.write.format("noop").mode("overwrite").save()


def main() -> None:
    stage, *arguments = sys.argv[1:]
    stages: dict[str, Callable[..., Seconds]] = {
        "segments": segments,
        "stock": stocked,
        "process": process,
        "spark": spark,
        "copy": copy,
        "prove": prove,
        "read": read,
    }
    print(json.dumps(stages[stage](*arguments)))


if __name__ == "__main__":
    main()
