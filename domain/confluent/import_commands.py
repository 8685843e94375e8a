"""Commands that copy a subject of another schema registry with its ids, numbers and guids (CSR-1003)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from annals.domain.confluent.commands import SchemaRequest
from annals.domain.confluent.subjects import ContextIds, Subject
from annals.domain.values.json_text import Json

#: The fact of a Version that a copy wrote: its `source`, the `state` that it had there then, and what it has here while
#: nobody else changes it: the `epoch`, if that is not 1, and the `modifiedat`.
IMPORTED: Final = "imported"
LIVE: Final = "live"
SOFT_DELETED: Final = "deleted"


@dataclass(frozen=True, slots=True)
class ImportedVersion:
    """A version at the source. guid: None if the source has none. state: LIVE or SOFT_DELETED."""

    number: int
    id: int
    schema: SchemaRequest
    guid: str | None = None
    state: str = LIVE


@dataclass(frozen=True, slots=True)
class ImportSubject:
    """Add the missing versions of a subject and its settings, all of them live.

    Nothing is recorded if one version contradicts what is here. Settings that are here stay. source: tells copies from
    different registries apart. config: members of the subject's own config, empty if it has none. mode: its own mode.
    subject: without a name for the settings of a context, which has no versions.
    """

    xid: str
    subject: Subject
    context_ids: ContextIds
    source: str
    versions: tuple[ImportedVersion, ...] = ()
    config: Mapping[str, Json] = field(default_factory=dict)
    mode: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteImportedVersions:
    """Soft-delete the versions of a subject that copies from a source wrote and that were soft-deleted there then.

    live_numbers: with it, also those that the source has deleted since: all others that these copies wrote, unless they
    were changed here or schemas here refer to them.
    """

    xid: str
    subject: Subject
    context_ids: ContextIds
    source: str
    live_numbers: frozenset[int] | None = None


ImportCommand = ImportSubject | DeleteImportedVersions
