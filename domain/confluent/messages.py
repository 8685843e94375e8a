"""The texts that describe why schemas are incompatible (CSR-808, CSR-812)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from annals.domain.confluent.compatibility.difference import Difference

#: The maximum number of characters of an older schema in a message.
_MAX_SCHEMA: Final = 10 << 10


def difference_messages(differences: Sequence[Difference], *, is_backward: bool) -> list[str]:
    """One message for each difference. is_backward: the new schema is the reader."""
    reader, writer = ("new", "old") if is_backward else ("old", "new")
    return [
        f"{{errorType:'{difference.type}', description:\"{_describe(difference, reader, writer)}\","
        f" additionalInfo:'{difference.info}'}}"
        for difference in differences
    ]


def closing_messages(number: int, old_text: str, level: str) -> list[str]:
    """What follows the differences from one version."""
    return [
        f"{{oldSchemaVersion: {number}}}",
        f"{{oldSchema: '{old_text[:_MAX_SCHEMA]}'}}",
        f"{{validateFields: 'false', compatibility: '{level}'}}",
    ]


def _describe(difference: Difference, reader: str, writer: str) -> str:
    return difference.text.replace("{reader}", reader).replace("{writer}", writer)
