"""JSON Pointers (RFC 6901)."""

from __future__ import annotations


def join_pointer(pointer: str, *steps: object) -> str:
    """A pointer extended by further steps: names and indexes."""
    return pointer + "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)
