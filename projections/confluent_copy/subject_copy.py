"""A subject as it is copied, and its form in JSON, which is that of Confluent's API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from annals.domain.confluent.schema_types import AVRO
from annals.domain.confluent.schema_versions import NamedReference
from annals.domain.confluent.subjects import Subject


@dataclass(frozen=True, slots=True)
class VersionCopy:
    """A version. extras: `metadata` and `ruleSet`, those that it has. guid: None if the registry has none."""

    number: int
    id: int
    type: str
    text: str
    references: tuple[NamedReference, ...] = ()
    extras: Mapping[str, Any] = field(default_factory=dict)
    guid: str | None = None
    is_deleted: bool = False

    def members(self) -> dict[str, Any]:
        """As JSON, with its number, id, and whether it is soft-deleted."""
        members = {
            "version": self.number,
            "id": self.id,
            "guid": self.guid,
            "deleted": self.is_deleted,
            "schemaType": self.type,
            "schema": self.text,
            "references": [reference.members() for reference in self.references],
            **self.extras,
        }
        return {name: value for name, value in members.items() if value not in (None, [])}


@dataclass(frozen=True, slots=True)
class SubjectCopy:
    """A subject, or without a name a context, with its own settings. versions: by number. config: empty for none."""

    subject: Subject
    versions: tuple[VersionCopy, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    mode: str | None = None

    @property
    def is_empty(self) -> bool:
        return not (self.versions or self.config or self.mode)


def parse_version_copy(members: Mapping[str, Any], *, is_deleted: bool) -> VersionCopy:
    """A version from JSON. Raises: KeyError, TypeError, ValueError for members that are missing or of another type."""
    if not isinstance(members, Mapping):
        raise TypeError("it is no object")
    references = tuple(
        NamedReference(str(one["name"]), str(one["subject"]), parse_number(one["version"]))
        for one in members.get("references") or ()
    )
    guid = members.get("guid")
    return VersionCopy(
        parse_number(members["version"]),
        parse_number(members["id"]),
        str(members.get("schemaType") or AVRO),
        str(members["schema"]),
        references,
        {name: members[name] for name in ("metadata", "ruleSet") if members.get(name)},
        str(guid) if guid else None,
        is_deleted,
    )


def parse_number(value: Any) -> int:
    """An integer from JSON. Raises: TypeError, ValueError."""
    try:
        return int(value)
    except OverflowError:  # of 1e400, which is infinite in Python
        raise ValueError(f"{value} is no integer") from None
