"""Clients that generators make of the served document compile, and read and write a served registry.

No generated code is stored: both generators are downloaded once, and read the document of a running server.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.downloads.environments import environment
from tests.support.downloads.maven import jars, java
from tests.support.serving import ROOT, Served, serving

CLIENTS = Path(__file__).with_name("clients")
PYTHON_GENERATOR = "openapi-python-client==0.29.1"
JAVA_GENERATOR = "org.openapitools:openapi-generator-cli:7.17.0@jar"
#: The libraries of the Java client, as in its own pom.xml.
JAVA_LIBRARIES = (
    "com.squareup.okhttp3:okhttp:4.12.0",
    "com.squareup.okhttp3:logging-interceptor:4.12.0",
    "com.google.code.gson:gson:2.10.1",
    "io.gsonfire:gson-fire:1.9.0",
    "org.apache.commons:commons-lang3:3.18.0",
    "org.openapitools:jackson-databind-nullable:0.2.8",
    "jakarta.ws.rs:jakarta.ws.rs-api:2.1.6",
    "jakarta.annotation:jakarta.annotation-api:1.3.5",
    "com.google.code.findbugs:jsr305:3.0.2",
)
#: The output of each client: names of types, what was written, errors as objects of a class.
SEEN = {
    "created": ["/schemagroups/g", 1, "Orders", True],
    "document written": 201,
    "document": '{"type": "string"}',
    "schema": ["s", "1", "JsonSchema/draft-07"],
    "listed": ["s"],
    "refused": ["mismatched_epoch", "/schemagroups/g", "9"],
    "refused below /-/": ["invalid_subscription", 400],
    "deleted": 204,
    "missing": "not_found",
}
#: Media types that the generator for Python leaves out: `*/*`, which stands for bytes, and JSON lines.
UNSUPPORTED = {"*/*", "application/x-ndjson"}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(f"sqlite:///{tmp_path / 'annals.db'}", tmp_path) as found:
        yield found


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["openapi.json", "openapi/schemaregistry.json", "openapi/messagecatalog.json"])
def test_a_python_client_has_all_operations(served: Served, tmp_path: Path, name: str) -> None:
    # For Python, importing each module, one for each operation and schema, is the best check without a compiler.
    complaints = generate_python(f"{served.url}/-/{name}", tmp_path)
    assert set(re.findall(r"^Unsupported content type (\S+)$", complaints, re.MULTILINE)) <= UNSUPPORTED
    left_out = re.findall(r"WARNING parsing (\S+ \S+) within \S+ Endpoint will not be generated", complaints)
    assert left_out == (["POST /-/links/{id}/log"] if name == "openapi.json" else [])  # JSON lines, from registries
    run([environment(PYTHON_GENERATOR), CLIENTS / "import_all.py", "annals_client"], tmp_path, PYTHONPATH=str(tmp_path))
    assert not re.search(r"Cannot parse|Unable to process|omitted|removal", complaints), complaints


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_python_client_reads_and_writes(served: Served, tmp_path: Path) -> None:
    generate_python(f"{served.url}/-/openapi.json", tmp_path)
    program = [environment(PYTHON_GENERATOR), CLIENTS / "python_client.py", served.url]
    assert answer(program, PYTHONPATH=str(tmp_path)) == SEEN


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_example_of_the_guide(served: Served, tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "guides" / "clients.md").read_text()
    [example] = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    program = example.replace("registry_client", "annals_client").replace("http://127.0.0.1:8080", served.url)
    generate_python(f"{served.url}/-/openapi.json", tmp_path)
    printed = run([environment(PYTHON_GENERATOR), "-c", program], tmp_path).stdout.splitlines()
    assert printed[0] == "1"
    assert "#mismatched_epoch" in printed[1]


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.uses("Java")
def test_a_java_client_reads_and_writes(served: Served, tmp_path: Path) -> None:
    generate_java(f"{served.url}/-/openapi.json", tmp_path)
    classpath = os.pathsep.join(map(str, [tmp_path / "classes", *jars(*JAVA_LIBRARIES)]))
    compile_java([*tmp_path.joinpath("src/main").rglob("*.java"), CLIENTS / "JavaClient.java"], classpath, tmp_path)
    assert answer([java(), "-cp", classpath, "JavaClient", served.url]) == SEEN


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.uses("Java")
@pytest.mark.parametrize("name", ["schemaregistry", "messagecatalog"])
def test_java_clients_of_the_legacy_apis_compile(served: Served, tmp_path: Path, name: str) -> None:
    generate_java(f"{served.url}/-/openapi/{name}.json", tmp_path)
    classpath = os.pathsep.join(map(str, jars(*JAVA_LIBRARIES)))
    compile_java([*tmp_path.joinpath("src/main").rglob("*.java")], classpath, tmp_path)


def generate_python(url: str, place: Path) -> str:
    """Writes the package `annals_client`, and returns the output of the generator."""
    python = environment(PYTHON_GENERATOR)
    options = ("--url", url, "--output-path", str(place / "annals_client"), "--meta", "none")
    path = os.pathsep.join([str(python.parent), os.environ["PATH"]])
    done = run([python, "-m", "openapi_python_client", "generate", *options], place, PATH=path)
    return re.sub("\x1b\\[[0-9;]*m", "", done.stdout + done.stderr)


def generate_java(url: str, place: Path) -> None:
    """Writes the sources of a client into `src/main`."""
    [generator] = jars(JAVA_GENERATOR)
    # Optional parameters are set by their names; without the property all of them are arguments, up to 24.
    options = ("-g", "java", "--additional-properties", "useSingleRequestParameter=true")
    run([java(), "-jar", generator, "generate", "-i", url, "-o", place, *options], place)


def compile_java(sources: list[Path], classpath: str, place: Path) -> None:
    """Compiles sources into `classes`. The compiler is part of the Java that runs them."""
    listed = place / "sources.txt"
    listed.write_text("\n".join(map(str, sources)))
    compiler = [java(), "-m", "jdk.compiler/com.sun.tools.javac.Main"]
    run([*compiler, "-nowarn", "-cp", classpath, "-d", str(place / "classes"), f"@{listed}"], place)


def answer(command: list[Any], **environment: str) -> Any:
    """The JSON that a program prints."""
    return json.loads(run(command, None, **environment).stdout)


def run(command: list[Any], place: Path | None, **environment: str) -> subprocess.CompletedProcess[str]:
    """The result of a program. Fails the test with the program's output if it does not succeed."""
    done = subprocess.run(
        [*map(str, command)], cwd=place, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done
