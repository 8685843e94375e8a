"""docs/guides/lake/questions.md: each query runs on the example, and gives the answer and the plan shown."""

from __future__ import annotations

import pytest

from tests.spark_projections.lake.conftest import FullLake
from tests.spark_projections.lake.questions import PAGE, Question, questions, register, section

pytestmark = [pytest.mark.uses("Spark"), pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def shop(full_lake: FullLake) -> FullLake:
    """The lakes, with the tables of the Delta one as views."""
    register(full_lake("delta"))
    return full_lake


@pytest.mark.parametrize("question", [*questions()], ids=lambda question: question.name)
def test_a_question(shop: FullLake, question: Question) -> None:
    assert section(shop("delta").spark, question) in PAGE.read_text()


def test_there_are_twenty() -> None:
    assert len([*questions()]) == 20
