"""A difference between two schemas that makes them incompatible (CSR-808)."""

from __future__ import annotations

from typing import NamedTuple


class Difference(NamedTuple):
    """A difference. type: its name in Confluent's registry. path: in the schemas. text: a sentence, where `{reader}`
    and `{writer}` stand for what the two schemas are called. info: the fragments of both.
    """

    type: str
    path: str
    text: str
    info: str = ""
