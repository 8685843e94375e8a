"""The trees of Python sources, for tests of the structure."""

from __future__ import annotations

import ast
import time


def parse(source: str) -> ast.Module:
    """The tree of a source.

    Python 3.11 counts the depth of all threads together: it raises SystemError if another thread parses at the same
    time, such as one that an earlier test has left.
    """
    try:
        return ast.parse(source)
    except SystemError:
        time.sleep(1)
        return ast.parse(source)
