"""Versions of subjects with their ids, as a fold over events.

A row stands for the content of one Version from one event on. It ends when the document changes (`replaced`), when the
Version is deleted by any API (`deleted`: soft-deleted here), and when this API deletes it for good (`gone`). Until then
its id resolves.
Rules CSR-401 to CSR-413, CSR-601, CSR-606 to CSR-608.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from annals.domain.confluent.facts import CONFLUENT, CONTENT_MEMBERS, facts_of, number_of, subject_name, type_of_schema
from annals.domain.confluent.subjects import VERSIONS_TYPE
from annals.domain.registry.events import EntityDeleted, EntityEvent
from annals.domain.values import xid as xids

#: The highest id: serializers write four bytes, and clients read them with a sign.
MAX_ID: Final = 2**31 - 1


class NamedReference(NamedTuple):
    """A schema that another one uses. name: by which the other one refers to it. subject: as given."""

    name: str
    subject: str
    version: int

    def members(self) -> dict[str, Any]:
        return self._asdict()


class SchemaVersion(NamedTuple):
    """A row, see the module. xid: of the Version. subject: its name without the context. key: of its content.

    document: SHA-256 of its text. extras: the members of `CONTENT_MEMBERS` that it has. since, replaced, deleted, gone:
    positions of events.
    """

    xid: str
    since: int
    subject: str
    number: int
    id: int
    key: str
    guid: str
    type: str
    document: str
    extras: Mapping[str, Any]
    replaced: int | None = None
    deleted: int | None = None
    gone: int | None = None

    @property
    def group(self) -> str:
        """The id of the Group that is its context."""
        return xids.segments(self.xid)[1]

    @property
    def resource(self) -> str:
        """The xid of the Resource that is its subject."""
        return xids.resource_of(self.xid)

    @property
    def is_live(self) -> bool:
        return self.replaced is None and self.deleted is None and self.gone is None

    @property
    def is_listed(self) -> bool:
        """Whether it is a version: live or soft-deleted."""
        return self.replaced is None and self.gone is None

    @property
    def references(self) -> list[NamedReference]:
        return [NamedReference(**reference) for reference in self.extras.get("references", ())]


def affects_schemas(event: EntityEvent, has_facts: bool) -> bool:
    """Whether an event can change rows. has_facts: whether its entity had facts before."""
    return event.type == VERSIONS_TYPE and (has_facts or CONFLUENT in event.private or _may_delete(event))


def _may_delete(event: EntityEvent) -> bool:
    return isinstance(event, EntityDeleted) and event.revision > 1


def fold_schema_versions(
    events: Iterable[tuple[int, EntityEvent]], rows: Iterable[SchemaVersion] = ()
) -> list[SchemaVersion]:
    """The rows of one Version's stream that the events add or change, in their final state.

    events: with positions, in order. rows: those of the stream before the events that are not gone.
    """
    before = {row.since: row for row in rows}
    after = dict(before)
    for position, event in events:
        for number in facts_of(event.private).get("forgotten", ()):
            _end_rows(after, number, position)
        live_row = next((row for row in after.values() if row.is_live), None)
        if isinstance(event, EntityDeleted):
            if live_row is not None and event.reason != "forgotten":
                after[live_row.since] = live_row._replace(deleted=position)
            continue
        new_row = schema_version(event, position)
        if live_row is not None:
            if new_row is not None and new_row._replace(since=live_row.since) == live_row:
                continue
            after[live_row.since] = live_row._replace(replaced=position)
        if new_row is not None:
            _restore_row(after, new_row)
            after[position] = new_row
    return [row for since, row in after.items() if before.get(since) != row]


def schema_version(event: EntityEvent, position: int) -> SchemaVersion | None:
    """The row of a Version's after-image; None if it is no version of a subject."""
    facts = facts_of(event.private)
    document = event.private.get("document")
    type = type_of_schema(str(event.attributes.get("format", "")), facts)
    subject = subject_name(xids.resource_of(event.xid), facts)
    if "id" not in facts or document is None or type is None:
        return None
    extras = {name: facts[name] for name in CONTENT_MEMBERS if name in facts}
    number = number_of(xids.entity_id(event.xid), facts)
    return SchemaVersion(
        event.xid, position, subject, number, facts["id"], facts["key"], facts["guid"], type, document, extras
    )


def _end_rows(rows: dict[int, SchemaVersion], number: int, position: int) -> None:
    """Ends the rows of a soft-deleted version, including those of its earlier contents."""
    for since, row in rows.items():
        if row.number == number and row.gone is None and not row.is_live:
            rows[since] = row._replace(gone=position)


def _restore_row(rows: dict[int, SchemaVersion], new_row: SchemaVersion) -> None:
    """Ends the row of the soft-deleted version that a new one is again (CSR-608)."""
    for since, row in rows.items():
        if row.deleted is not None and row.gone is None and (row.number, row.id) == (new_row.number, new_row.id):
            rows[since] = row._replace(gone=new_row.since)
