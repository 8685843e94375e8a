"""Spark finds the format `annals` by itself, in a session that knows nothing of Annals."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from annals.spark_projections.java import MissingJava, java_home
from tests.spark_projections.served_registry import ServedLog

pytestmark = pytest.mark.uses("Spark")

#: Imports only PySpark. Prints the number of rows of the log.
PROGRAM = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
print("rows", spark.read.format("annals").load(sys.argv[1]).count())
"""


@pytest.mark.long
def test_a_session_without_any_code_of_annals(registry: ServedLog, tmp_path: Path) -> None:
    try:
        java = java_home()
    except MissingJava as error:
        pytest.skip(str(error))
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env = {**inherited, "JAVA_HOME": str(java), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-c", PROGRAM, registry.url]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=100)
    assert done.stdout.split() == ["rows", str(len(registry.rows()))], done.stderr
