"""Schema formats: what a document of one has to be, and which changes between Versions it allows.

A format is a module of this package; `FORMATS` lists them. None is built in yet, so `capabilities.formats` is empty and
every format that a Version names is unknown (ENT-110).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol


class Violation(Exception):
    """A document breaks its format or a rule of compatibility; the message says where and how."""


class Format(Protocol):
    """One schema format.

    names: values of `format` that mean it, lower case. compatibilities: the rules that it can check, lower case.
    """

    names: frozenset[str]
    compatibilities: frozenset[str]

    def check(self, document: bytes) -> None:
        """Raises: Violation."""

    def compare(self, document: bytes, older: Sequence[bytes], rule: str) -> None:
        """Holds a document against older ones. rule: backward, forward or full. Raises: Violation."""


#: Every format that this registry knows.
FORMATS: Final[tuple[Format, ...]] = ()


def find(name: str) -> Format | None:
    """The format of a name, in any letter case."""
    return next((format for format in FORMATS if name.lower() in format.names), None)
