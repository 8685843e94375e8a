"""The command starts fast: it imports only what the verb needs. The bounds of processor time are generous."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.support.polling import until

#: Packages that no verb needs for its help or for errors of usage.
HEAVY = frozenset(("sqlalchemy", "starlette", "uvicorn", "httpx", "structlog", "pydantic_settings", "eventsourcing"))
#: Packages that a registry in a SQLite file needs only for some requests and settings.
RARE = frozenset(
    ("psycopg", "kafka", "jinja2", "jwt", "cryptography", "wsproto", "paho", "nats", "proton", "pyspark", "pyarrow")
) | frozenset(("pandas", "numpy", "matplotlib"))
#: Packages that only the worker processes for document checks import.
FORMATS = frozenset(
    ("fastavro", "jsonschema", "jsonschema_rs", "json_structure", "grpc_tools", "google.protobuf", "xmlschema")
) | frozenset(("graphql", "openapi_spec_validator"))
#: By verb, further packages that it does not import.
UNUSED: Final[Mapping[str, Set[str]]] = {
    "--version": HEAVY | {"rich", "pydantic", "asyncio"},
    "": HEAVY,
    "nonsense": HEAVY | {"rich"},
    "log --help": HEAVY,
    "serve --help": HEAVY,
    "import": HEAVY,
    "completion bash": HEAVY | {"rich"},
    "log tail": {"rich", "uvicorn", "httpx", "httpcore", "structlog", "annals.api.app"},
}
_IMPORT = re.compile(r"^import time:.*\| +(\S+)$", re.MULTILINE)


@pytest.mark.parametrize(("words", "unused"), UNUSED.items(), ids=UNUSED.keys())
def test_what_a_verb_does_not_import(store_file: str, words: str, unused: Set[str]) -> None:
    started = subprocess.run([*START, *words.split()], capture_output=True, text=True, check=False, env=ENVIRONMENT)
    assert _imported(started.stderr) & (unused | RARE | FORMATS) == set()


def test_what_a_server_does_not_import_for_its_first_answer(folder: Path) -> None:
    with _served(folder) as (url, output):
        assert httpx.get(f"{url}/-/readyz").status_code == 200
        assert _imported(output.read_text()) & (RARE | FORMATS | {"httpx"}) == set()


def test_the_version_takes_little_processor_time(folder: Path) -> None:
    assert min(_processor_seconds("--version") for _ in range(3)) < 0.8


def test_a_server_takes_little_processor_time_to_its_first_answer(folder: Path) -> None:
    with _served(folder) as (url, _):
        httpx.get(f"{url}/-/readyz").raise_for_status()
    before = os.times().children_user + os.times().children_system
    with _served(folder) as (url, _):
        httpx.get(f"{url}/-/readyz").raise_for_status()
    assert os.times().children_user + os.times().children_system - before < 4


#: Python may write and use compiled sources, as in an installation.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
START = (sys.executable, "-X", "importtime", "-m", "annals")


@pytest.fixture
def store_file(folder: Path) -> str:
    (folder / "data.json").write_text('{"schemagroups": {"g": {}}}')
    subprocess.run([*START, "import", "data.json"], capture_output=True, check=True, env=ENVIRONMENT)
    return "annals.db"


@contextmanager
def _served(folder: Path) -> Iterator[tuple[str, Path]]:
    """The URL of a server, and the file with its stderr."""
    output = folder / "said.txt"
    with output.open("w") as errors:
        process = subprocess.Popen([*START, "serve", "--port", "0"], stderr=errors, env=ENVIRONMENT)
    try:
        until(lambda: "Annals serves" in output.read_text())
        match = re.search(r"Annals serves (\S+)", output.read_text())
        assert match
        yield match[1], output
    finally:
        process.terminate()
        process.wait(timeout=60)


def _processor_seconds(*words: str) -> float:
    process = subprocess.Popen([sys.executable, "-m", "annals", *words], stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    _, status, usage = os.wait4(process.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return usage.ru_utime + usage.ru_stime


def _imported(output: str) -> set[str]:
    """Modules in the output of `-X importtime`, and the packages that contain them."""
    return {".".join(name.split(".")[:count]) for name in _IMPORT.findall(output) for count in (1, 2, 3)}
