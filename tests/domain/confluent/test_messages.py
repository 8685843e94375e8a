"""The messages about incompatible schemas."""

from __future__ import annotations

from annals.domain.confluent.compatibility.difference import Difference
from annals.domain.confluent.messages import closing_messages, difference_messages


def test_a_message_names_the_type_the_place_and_both_fragments() -> None:
    # CSR-808
    difference = Difference("TYPE_MISMATCH", "/", "The {reader} schema differs from the {writer} schema", "a, b")
    assert difference_messages([difference], is_backward=True) == [
        "{errorType:'TYPE_MISMATCH', description:\"The new schema differs from the old schema\", additionalInfo:'a, b'}"
    ]
    assert "The old schema differs from the new" in difference_messages([difference], is_backward=False)[0]
    assert closing_messages(3, "x" * 20_000, "FULL") == [
        "{oldSchemaVersion: 3}",
        "{oldSchema: '" + "x" * 10_240 + "'}",
        "{validateFields: 'false', compatibility: 'FULL'}",
    ]
