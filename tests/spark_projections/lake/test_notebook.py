"""docs/guides/lake/shop.ipynb: it runs from beginning to end on the example, and draws five plots."""

from __future__ import annotations

import json
from typing import Final

import nbformat
import pytest
from nbclient import NotebookClient

from tests.spark_projections.lake.conftest import FullLake
from tests.spark_projections.lake.questions import FOLDER, questions

pytestmark = [pytest.mark.uses("Spark"), pytest.mark.long, pytest.mark.timeout(1200)]

_CONF: Final = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1"}


def test_the_notebook(full_lake: FullLake, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {
        "ANNALS_LAKE": full_lake("delta").uri,
        "ANNALS_QUESTIONS": str(FOLDER / "questions"),
        "ANNALS_SPARK_MASTER": "local[2]",
        "ANNALS_SPARK_MEMORY": "700m",
        "ANNALS_SPARK_CONF": json.dumps(_CONF),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    notebook = nbformat.read(FOLDER / "shop.ipynb", as_version=4)  # type: ignore[no-untyped-call]  # has no types
    assert not any(cell.get("outputs") for cell in notebook.cells), "the notebook is stored without results"
    done = NotebookClient(notebook, timeout=900, kernel_name="python3").execute()
    outputs = [output for cell in done.cells for output in cell.get("outputs", ())]
    assert [output for output in outputs if output.output_type == "error"] == []
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 5
    text = "".join(output.get("text", "") for output in outputs)
    assert all(question.text in text for question in questions())
