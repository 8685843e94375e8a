"""Commands of Confluent's API. xid: of the context's Group, or of the registry for settings that belong to no Group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from annals.domain.confluent.metadata_rules import merged_metadata, merged_rule_set
from annals.domain.confluent.schema_versions import NamedReference
from annals.domain.confluent.subjects import ContextIds, Subject
from annals.domain.values.json_text import Json

#: The version that stands for the latest one if it has the schema, else for the next one.
LATEST_OR_NEXT: Final = -1


@dataclass(frozen=True, slots=True)
class SchemaRequest:
    """A schema as a client sends it. metadata, rule_set: None if absent. id: None unless given.

    version: None unless given; LATEST_OR_NEXT, or the number of a version.
    """

    text: str
    type: str
    references: tuple[NamedReference, ...] = ()
    metadata: Mapping[str, Json] | None = None
    rule_set: Mapping[str, Json] | None = None
    id: int | None = None
    version: int | None = None

    @property
    def is_new(self) -> bool:
        """Whether the text may be one that no registry has stored: there is no id, and it is not left out."""
        return self.id is None and bool(self.text)

    @property
    def extras(self) -> dict[str, Any]:
        """The references, metadata and rule set, those that it has, as facts."""
        members = {
            "references": [reference.members() for reference in self.references],
            "metadata": dict(self.metadata or {}),
            "ruleSet": dict(self.rule_set or {}),
        }
        return {name: value for name, value in members.items() if value}

    def inheriting(self, latest: Mapping[str, Any], config: Mapping[str, Any]) -> SchemaRequest:
        """The request with metadata and rules of the latest version, and with those that a config adds (CSR-505).

        latest: the extras of that version.
        """
        metadata, rule_set = self.metadata or latest.get("metadata"), self.rule_set or latest.get("ruleSet")
        return replace(
            self,
            metadata=merged_metadata(metadata, config.get("defaultMetadata"), config.get("overrideMetadata")),
            rule_set=merged_rule_set(rule_set, config.get("defaultRuleSet"), config.get("overrideRuleSet")),
        )


@dataclass(frozen=True, slots=True)
class RegisterSchema:
    """Add a version with a schema to a subject, unless it has one with the same content.

    default_level: the compatibility level where none is set. normalize: compare and store the normalized text. force:
    skip the check of compatibility.
    """

    xid: str
    subject: Subject
    schema: SchemaRequest
    context_ids: ContextIds
    default_level: str = "BACKWARD"
    normalize: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True)
class DeleteSchemas:
    """Delete a subject, or one version of it. version: None for all, 0 for the latest. permanent: delete for good."""

    xid: str
    subject: Subject
    context_ids: ContextIds
    version: int | None = None
    permanent: bool = False


class SettingKind(StrEnum):
    """What a scope has settings of."""

    CONFIG = "config"
    MODE = "mode"


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """Change the config or the mode of a subject, a context, or all contexts.

    values: the members of a config to change, None to clear one; `mode` of a mode. deletes: remove all instead.
    force: a mode IMPORT although there are versions. recursive: remove those of the subjects in a context as well.
    """

    xid: str
    subject: Subject
    kind: SettingKind
    context_ids: ContextIds
    values: Mapping[str, Json] = field(default_factory=dict)
    deletes: bool = False
    force: bool = False
    recursive: bool = False


@dataclass(frozen=True, slots=True)
class DeleteContext:
    """Delete a context that has no schemas."""

    xid: str
    context: str
    context_ids: ContextIds


@dataclass(frozen=True, slots=True)
class AssignSchemaIds:
    """Give ids to the schemas that have none: those of a program without this API."""


ConfluentCommand = RegisterSchema | DeleteSchemas | WriteSettings | DeleteContext | AssignSchemaIds
