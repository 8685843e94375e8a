"""An installed distribution works next to a project whose packages have the same names as folders of Annals."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

import annals
from annals.spark_projections.java import MissingJava, java_home
from tests.packaging.conftest import Distributions
from tests.packaging.installed import OTHERS, Installed, install

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

ORIGINS = """
import annals.api.app, annals.spark_projections.session, pyspark_annals
print(annals.__file__, annals.api.app.__file__, annals.spark_projections.session.__file__, pyspark_annals.__file__)
"""
OWNERS = """
import sys, importlib, annals.api.app
print(*[importlib.import_module(name).OWNER for name in sys.argv[1:]])
"""
#: An export with one schema.
DOCUMENT = {
    "schemagroups": {"g": {"schemas": {"s": {"versions": {"1": {"format": "JsonSchema/draft-07", "schema": {}}}}}}}
}
#: Verbs of each group that need no other server; of verbs that need one, the help.
VERBS = (
    ("log", "tail"),
    ("log", "history", "/schemagroups/g"),
    ("log", "verify"),
    ("log", "hash"),
    ("rebuild",),
    ("config",),
    ("cesql", "1 + 1"),
    ("subscriptions", "list"),
    ("replicate", "list"),
    ("segments", "write", "--folder", "segments"),
    ("segments", "verify", "--folder", "segments"),
    ("publish", "--help"),
    ("secrets", "rotate", "--help"),
    ("spark", "sql", "--help"),
)
COUNT = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
print(spark.read.format("annals").load(sys.argv[1]).count())
"""


@pytest.fixture(scope="module")
def installed(distributions: Distributions, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """An environment with the wheel."""
    return install(distributions.wheel, tmp_path_factory.mktemp("wheel"))


def has_its_own_code(installed: Installed) -> bool:
    return all(Path(origin).is_relative_to(installed.environment) for origin in installed.python(ORIGINS).split())


def test_the_source_distribution(distributions: Distributions, tmp_path: Path) -> None:
    installed = install(distributions.sdist, tmp_path)
    assert installed.annals("--version").strip() == f"annals {annals.__version__}"
    assert has_its_own_code(installed)
    with installed.serving() as url:
        assert httpx.get(f"{url}/-/readyz").status_code == 200


def test_the_code_is_that_of_the_wheel(installed: Installed) -> None:
    assert installed.annals("--version").strip() == f"annals {annals.__version__}"
    assert has_its_own_code(installed)


def test_the_other_project_keeps_its_names(installed: Installed) -> None:
    assert installed.python(OWNERS, *OTHERS).split() == ["other"] * len(OTHERS)


def test_nothing_else_is_importable(installed: Installed, tmp_path: Path) -> None:
    program = "import sys, importlib.util as u; print([n for n in sys.argv[1:] if u.find_spec(n)])"
    elsewhere = installed._replace(project=tmp_path)
    assert elsewhere.python(program, *OTHERS, "tests", "bench", "docs").strip() == "[]"


def test_it_serves_imports_and_exports(installed: Installed) -> None:
    installed.project.joinpath("document.json").write_text(json.dumps(DOCUMENT))
    installed.annals("import", "document.json")
    with installed.serving() as url:
        assert httpx.get(f"{url}/schemagroups/g/schemas/s").json() == {}
        assert httpx.get(f"{url}/-/docs").status_code == 200  # needs the page and the OpenAPI documents
        assert installed.annals("export").encode() == httpx.get(f"{url}/export").content
    for verb in VERBS:
        installed.annals(*verb)


@pytest.mark.uses("Spark")
def test_spark_finds_the_format(installed: Installed) -> None:
    try:
        java = java_home()
    except MissingJava as error:
        pytest.skip(str(error))
    with installed.serving() as url:
        head = httpx.get(f"{url}/-/log/head").json()["position"]
        python = str(installed.environment / "bin" / "python")
        counted = installed.python(COUNT, url, JAVA_HOME=str(java), PYSPARK_PYTHON=python, SPARK_LOCAL_IP="127.0.0.1")
    assert counted.split() == [str(head)]
