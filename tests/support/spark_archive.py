"""How Spark's Java is started for tests: for a short life, and with the classes that Spark needs from an archive.

`python -m tests.support.spark_archive` makes the archive in the folder of the environment, which takes some seconds
once and saves some in each of the tests that start a Java. A Java that it does not fit passes over it without a word.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

ARCHIVE: Final = Path(sys.prefix, "spark.jsa")
#: What Spark's own scripts add to the options of the Java that they start.
OPTIONS: Final = "SPARK_SUBMIT_OPTS"
#: Most of a short life would go into compiling what runs once.
QUICK: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


def options() -> str:
    """Those of a Java that Spark is given for one test."""
    return f'{QUICK} -XX:SharedArchiveFile="{ARCHIVE}" -Xlog:disable' if ARCHIVE.exists() else QUICK


def make() -> None:
    """Makes the archive of what a Java has loaded at the end of a little of everything.

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
    java.stdin.close()  # which ends it, and then it writes the archive
    java.wait()


if __name__ == "__main__":
    make()
