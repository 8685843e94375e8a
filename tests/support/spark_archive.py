"""Options of Spark's JVM in tests: tuned for a short run, with the classes that Spark needs in a CDS archive.

`python -m tests.support.spark_archive` creates the archive in the folder of the Python environment. This takes some
seconds once, and saves some in each test that starts a JVM. A JVM that cannot use the archive silently ignores it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

ARCHIVE: Final = Path(sys.prefix, "spark.jsa")
#: The environment variable whose value Spark's scripts add to the options of the JVM.
OPTIONS: Final = "SPARK_SUBMIT_OPTS"
#: In a short run, compiling code that runs once would take most of the time.
QUICK: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


def options() -> str:
    """The JVM options for one test."""
    return f'{QUICK} -XX:SharedArchiveFile="{ARCHIVE}" -Xlog:disable' if ARCHIVE.exists() else QUICK


def make() -> None:
    """Creates the archive from the classes that a JVM loads for a few typical operations.

    Raises: MissingJava, ImportError.
    """
    from pyspark.sql import functions as f

    from annals.spark_projections.session import SparkSettings, session

    os.environ[OPTIONS] = f'{QUICK} -XX:ArchiveClassesAtExit="{ARCHIVE}" -Xlog:disable'
    spark = session(SparkSettings(master="local[1]", memory="700m", conf={"spark.ui.enabled": "false"}), [])
    with TemporaryDirectory() as folder:
        numbers = spark.range(100).withColumn("text", f.col("id").cast("string"))
        numbers.mapInArrow(lambda batches: batches, numbers.schema).write.parquet(f"{folder}/numbers")
        read = spark.read.parquet(f"{folder}/numbers")
        read.join(numbers, "id").groupBy("id").count().orderBy("id").collect()
        stream = spark.readStream.schema(read.schema).parquet(f"{folder}/numbers")
        query = stream.writeStream.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)
        query.foreachBatch(lambda batch, number: None).start().awaitTermination()
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    java = gateway.proc
    spark.stop()
    java.stdin.close()  # ends the JVM, which then writes the archive
    java.wait()


if __name__ == "__main__":
    make()
