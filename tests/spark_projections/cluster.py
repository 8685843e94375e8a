"""A standalone cluster of Spark on this machine: a master and two workers, each in its own process."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pyspark

from annals.spark_projections.java import java_home
from tests.support.ports import free_port, wait_for_port
from tests.support.spark_archive import options

_CLASSES: Final = "org.apache.spark.deploy"
_HOST: Final = "127.0.0.1"


@contextmanager
def standalone(home: Path) -> Iterator[str]:
    """The URL of the master. home: the folder for the logs of master, workers and executors."""
    port = free_port()
    master = ("master.Master", "--host", _HOST, "--port", str(port), "--webui-port", str(free_port()))
    with ExitStack() as stack:
        started = stack.enter_context(_process(home, "master", *master))
        wait_for_port(port, lambda: started.poll() is None, 60)
        url = f"spark://{_HOST}:{port}"
        for name in ("one", "two"):
            options = ("--host", _HOST, "--webui-port", "0", "--cores", "1", "--memory", "1g")
            work = ("--work-dir", str(home / name))
            stack.enter_context(_process(home, name, "worker.Worker", *options, *work, url))
        yield url


@contextmanager
def _process(home: Path, name: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    # Only the variables that a service would have, and nothing else of the tests' environment.
    env = {
        "JAVA_HOME": str(java_home()),
        "PATH": "/usr/bin:/bin",
        "SPARK_LOCAL_IP": _HOST,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": options(),
    }
    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    command = [str(program), f"{_CLASSES}.{arguments[0]}", *arguments[1:]]
    folder = home / f"{name}-home"
    folder.mkdir(parents=True)
    with (home / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(timeout=30)
