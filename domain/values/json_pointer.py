"""JSON Pointers (RFC 6901)."""

from __future__ import annotations


def join_pointer(pointer: str, *steps: object) -> str:
    """A pointer extended by further steps: names and indexes."""
    return pointer + "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def split_pointer(pointer: str) -> list[str]:
    """The steps of a pointer."""
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
