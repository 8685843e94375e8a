"""What only Confluent's API knows of an entity: the private member `confluent` of its events (CSR-902).

Of a Version: `id`, `key` and `guid` of its content, `number` where that is not its versionid, `subject` where the id of
its Resource is not the name, `type` where its format does not say it, `references`, `metadata` and `ruleSet`,
`accepted` where the registry's own checks do not bind it, `imported` with the source of a copy and its state there,
`forgotten` with the numbers of earlier versions of its stream that were deleted for good.
Of a Resource: `subject`, `highest` number, `config`, `mode`. Of a Group: `context`, `config`, `mode`, and `subjects`
with the settings of those that have no Resource. Of the registry: `contexts` with their settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from annals.domain.confluent.schema_types import is_mixed, type_of_format
from annals.domain.confluent.subjects import name_of_id
from annals.domain.values import xid as xids

#: The private member. It is absent where there is nothing in it.
CONFLUENT: Final = "confluent"
#: The fact of a Version that the registry's own checks do not bind.
ACCEPTED: Final = "accepted"
#: The highest number of a version: clients read it as a signed integer of 32 bits.
MAX_NUMBER: Final = 2**31 - 1
#: The members of a Version that belong to its content, besides its text.
CONTENT_MEMBERS: Final = ("references", "metadata", "ruleSet")

Facts = Mapping[str, Any]


def facts_of(private: Mapping[str, Any]) -> Facts:
    """The facts among the private members of an entity."""
    facts: Facts = private.get(CONFLUENT, {})
    return facts


def parse_number(text: str) -> int:
    """The number that a versionid itself is; 0 if it is none (CSR-404)."""
    is_number = text.isascii() and text.isdecimal() and text[0] != "0" and len(text) <= 10
    return int(text) if is_number and int(text) <= MAX_NUMBER else 0


def number_of(versionid: str, facts: Facts) -> int:
    """The number of a Version that is a version of a subject (CSR-401)."""
    number: int = facts.get("number") or parse_number(versionid)
    return number


def subject_name(resource: str, facts: Facts) -> str:
    """The name of the subject that a Resource is. resource: its xid; facts: its own or those of one of its Versions."""
    recorded: str | None = facts.get("subject")
    return recorded if recorded is not None else name_of_id(xids.entity_id(resource))


def type_of_schema(format: str, facts: Facts) -> str | None:
    """AVRO, JSON or PROTOBUF; None for a Version of another format (CSR-405)."""
    return facts.get("type") if is_mixed(format) else type_of_format(format)


def with_facts(facts: Facts, **changes: Any) -> dict[str, Any]:
    """The facts with other values; those that are None are removed."""
    return {name: value for name, value in {**facts, **changes}.items() if value is not None}
