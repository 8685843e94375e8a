"""Skips a test whose program or file is not available, or fails it if no test may be skipped."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

from tests.support.stores import WHOLE


def leave_out(reason: str) -> NoReturn:
    """Skips the test, or fails it if `ANNALS_TEST_WHOLE` is set, as `.ci/run` does."""
    if os.environ.get(WHOLE):
        pytest.fail(f"{reason}, and {WHOLE} lets no test be left out", pytrace=False)
    pytest.skip(reason)
