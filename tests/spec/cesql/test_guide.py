"""The examples in docs/reference/cesql.md have the values of their expressions."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from annals.domain.cesql import compile_expression
from annals.domain.cesql.functions import FUNCTIONS

GUIDE = Path(__file__).resolve().parents[3].joinpath("docs", "reference", "cesql.md").read_text()
EXAMPLES = [
    line.split("->") for block in re.findall(r"```cesql\n(.*?)```", GUIDE, re.DOTALL) for line in block.splitlines()
]


@pytest.mark.parametrize(("expression", "printed"), EXAMPLES)
def test_examples(expression: str, printed: str) -> None:
    # SUB-641: value and errors, as printed in the guide
    found = compile_expression(expression.strip()).evaluate({})
    assert ", ".join([json.dumps(found.value), *found.errors]) == printed.strip()


def test_every_function_is_named() -> None:
    assert {name for name in FUNCTIONS if f"`{name}`" not in GUIDE} == set()
