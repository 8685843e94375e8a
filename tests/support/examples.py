"""How many examples hypothesis makes up for a test: all in the long tests, and a part of them in a usual run."""

from __future__ import annotations

import os
from typing import Final

#: The percentage of examples in this run.
PERCENTAGE: Final = "ANNALS_TEST_EXAMPLES"


def examples(number: int) -> int:
    """The number of examples in this run. number: how many a thorough run has."""
    return max(1, number * int(os.environ.get(PERCENTAGE, "25")) // 100)
