"""How many examples hypothesis generates for a test: all of them in the long tests, a part of them in a usual run."""

from __future__ import annotations

import os
from typing import Final

#: The environment variable with the percentage of examples in this run.
PERCENTAGE: Final = "ANNALS_TEST_EXAMPLES"


def examples(number: int) -> int:
    """The number of examples in this run. number: that of a run with 100 percent."""
    return max(1, number * int(os.environ.get(PERCENTAGE, "10")) // 100)
