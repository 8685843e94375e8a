"""Revisions, interactions and differences as JSON members and CSV rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from annals.api.audit.formats import JsonMembers, TableLayout
from annals.commands.store.hashes import Interaction
from annals.domain.access.roles import Caller
from annals.domain.registry.events import EntityDeleted, EntityEvent, EntityRefreshed, EntityUpdated
from annals.domain.values.json_text import dumps
from annals.projections.audit.entity_diff import ABSENT, AttributeDiff, EntityDiff, diff_values, unless_deleted
from annals.projections.audit.trail import Revision

#: The two images that a revision can show.
IMAGES: Final = ("before", "after")

_ACTIONS: Final[dict[type[EntityEvent], str]] = {
    EntityUpdated: "updated",
    EntityRefreshed: "refreshed",
    EntityDeleted: "deleted",
}


def action_name(event: EntityEvent) -> str:
    """What an event did: `created`, `updated`, `refreshed` or `deleted`."""
    return _ACTIONS.get(type(event), "created")


def revision_table(images: Iterable[str] = ()) -> TableLayout[Revision]:
    """The layout of revisions with some of their images. An image is what the API showed, without absolute URLs."""
    image_names = tuple(images)

    def members(revision: Revision) -> JsonMembers:
        images_by_name = {"before": _image(revision.previous_event), "after": _image(revision.event)}
        return _revision_members(revision) | {name: images_by_name[name] for name in image_names}

    def rows(revision: Revision) -> Iterator[JsonMembers]:
        yield members(revision) | {"changed": " ".join(revision.event.changed)}

    return TableLayout((*_REVISION_COLUMNS, *IMAGES, *_CREDENTIAL_COLUMNS), members, rows)


def _revision_members(revision: Revision) -> JsonMembers:
    event, interaction = revision.event, revision.interaction
    return {
        "position": revision.position,
        "time": interaction.time,
        "xid": event.xid,
        "type": event.type,
        "revision": event.revision,
        "action": action_name(event),
        **({"reason": event.reason} if isinstance(event, EntityDeleted) else {}),
        "epoch": event.epoch,
        "changed": event.changed,
        "caller": interaction.caller,
        **interaction.credential,
        "command": interaction.command,
        "xregcorrelationid": interaction.xregcorrelationid,
        "last": interaction.last,
    }


def _image(event: EntityEvent | None) -> JsonMembers | None:
    """The state of the entity after an event; None if it does not exist then."""
    existing_event = unless_deleted(event)
    return existing_event.attributes if existing_event else None


_REVISION_COLUMNS: Final = (
    *("position", "time", "xid", "type", "revision", "action", "reason", "epoch", "changed"),
    *("caller", "command", "xregcorrelationid", "last"),
)
_CREDENTIAL_COLUMNS: Final = ("authenticator", "keyid")


def interaction_members(interaction: Interaction, *, with_hashes: bool = True) -> JsonMembers:
    """The members of one interaction; hashes as hexadecimal text, for a reader who sees all that they cover."""
    hashes = {"chain": interaction.chain.hex(), "state": interaction.state.hex()} if with_hashes else {}
    return {
        "xregcorrelationid": interaction.xregcorrelationid,
        "first": interaction.first,
        "last": interaction.last,
        "time": interaction.time,
        "caller": interaction.caller,
        **interaction.credential,
        "command": interaction.command,
        "registryurl": interaction.registry_url,
        **hashes,
    }


def interaction_table(
    *, with_hashes: bool, find_xids: Callable[[Interaction], list[str]] | None = None
) -> TableLayout[Interaction]:
    """The layout of interactions. with_hashes: whether the reader sees all that they cover; the header of CSV is the
    same without. find_xids: returns the entities to name; None to name none.
    """

    def members(interaction: Interaction) -> JsonMembers:
        xids = {} if find_xids is None else {"xids": find_xids(interaction)}
        return interaction_members(interaction, with_hashes=with_hashes) | xids

    def rows(interaction: Interaction) -> Iterator[JsonMembers]:
        row = members(interaction)
        yield row | ({"xids": " ".join(row["xids"])} if "xids" in row else {})

    columns = (
        *("xregcorrelationid", "first", "last", "time", "caller", "command", "registryurl", "chain", "state"),
        *_CREDENTIAL_COLUMNS,
    )
    return TableLayout((*columns, "xids") if find_xids else columns, members, rows)


def moment_members(interaction: Interaction, caller: Caller) -> JsonMembers:
    """A moment: its log position and its last interaction. The empty log has only position 0.

    The interaction may be one of hidden entities only, so its id is for callers who see everything.
    """
    if not interaction.last:
        return {"position": 0}
    id = {"xregcorrelationid": interaction.xregcorrelationid} if caller.sees_everything else {}
    return {"position": interaction.last, "time": interaction.time, **id}


def _difference_members(difference: EntityDiff) -> JsonMembers:
    before, after = difference.documents
    document = {"changed": before != after, "before": before, "after": after}
    schemas = {
        name: schema._asdict() for name, schema in zip(IMAGES, difference.schemas, strict=True) if schema is not None
    }
    return {
        "xid": difference.xid,
        "type": difference.type,
        "change": difference.change,
        "attributes": [
            _present_members(path=value_diff.path, before=value_diff.before, after=value_diff.after)
            for value_diff in difference.values
        ],
        **({"document": document} if before or after else {}),
        **({"schema": schemas} if schemas else {}),
    }


def _present_members(**members: Any) -> JsonMembers:
    """Members with a value. The value of an attribute may be null."""
    return {name: value for name, value in members.items() if value is not ABSENT}


def _difference_rows(difference: EntityDiff) -> Iterator[JsonMembers]:
    """A row for each attribute, one for a changed document, and one for each part of what the entity is to Confluent's
    API that differs; values as JSON."""
    shared_members = {"xid": difference.xid, "type": difference.type, "change": difference.change}
    for value_diff in difference.values:
        yield _value_row(shared_members, "attribute", value_diff)
    before, after = difference.documents
    if before != after:
        yield {**shared_members, "of": "document", "path": "", "before": before, "after": after}
    schema_before, schema_after = ({} if one is None else one._asdict() for one in difference.schemas)
    for value_diff in diff_values(schema_before, schema_after):
        yield _value_row(shared_members, "schema", value_diff)


def _value_row(shared_members: JsonMembers, of: str, value_diff: AttributeDiff) -> JsonMembers:
    values = _present_members(before=value_diff.before, after=value_diff.after)
    return {
        **shared_members,
        "of": of,
        "path": value_diff.path,
        **{name: _json_text(values[name]) for name in values},
    }


def _json_text(value: Any) -> str:
    return dumps(value).decode()


DIFFERENCE_TABLE: Final[TableLayout[EntityDiff]] = TableLayout(
    ("xid", "type", "change", "of", "path", "before", "after"), _difference_members, _difference_rows
)
