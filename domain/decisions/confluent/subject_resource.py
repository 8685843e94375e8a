"""The Resource of a subject while a decision writes it: creates it, and adds Versions with their facts.

Rules CSR-307 to CSR-310, CSR-403, CSR-418, CSR-419.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any, NamedTuple

from annals.domain.confluent.errors import invalid_subject
from annals.domain.confluent.facts import subject_name, type_of_schema, with_facts
from annals.domain.confluent.schema_registry import SchemaRegistry
from annals.domain.confluent.schema_types import CONTENT_TYPES, common_format, is_mixed
from annals.domain.confluent.subjects import ContextIds, Subject
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.drafts import ResourceDraft, VersionDraft
from annals.domain.decisions.confluent.contexts import record_context
from annals.domain.decisions.confluent.subject_settings import move_settings_to_resource
from annals.domain.decisions.rules.readonly import check_writable
from annals.domain.decisions.write_resource import WriteOptions, write_version
from annals.domain.decisions.xrefs import check_no_xref
from annals.domain.model.validation.values import fits_in_header
from annals.domain.values import xid as xids


class NewSchemaVersion(NamedTuple):
    """A version to add. ancestor: the versionid of the version before it, if there is one. createdat: None for now.

    facts: of its Version, besides its number and what its Resource decides.
    """

    number: int
    type: str
    text: str
    facts: Mapping[str, Any]
    ancestor: str | None = None
    createdat: str | None = None


def subject_resource(
    changes: ChangeSet, registry: SchemaRegistry, group_xid: str, subject: Subject, context_ids: ContextIds
) -> ResourceDraft:
    """The draft of a subject's Resource, which may be new. Raises: SchemaRegistryError; any Problem of a write."""
    group = xids.entity_id(group_xid)
    stored_xid = registry.resource(group, subject.name)
    xid = stored_xid or registry.new_resource(group, subject.name)
    if xid is None:
        raise invalid_subject(subject.qualified)
    record_context(changes, group_xid, subject, context_ids.context_of(group))
    check_writable(changes, xid, frozenset())
    resource = changes.resource(xid)
    check_no_xref(resource)
    if subject_name(xid, {}) != subject.name:
        resource.confluent = with_facts(resource.confluent, subject=subject.name)
    if stored_xid is None:
        move_settings_to_resource(changes, resource, subject.name)
    return resource


def set_common_format(changes: ChangeSet, resource: ResourceDraft, *new: tuple[str, str | None]) -> str:
    """The format that all Versions of a Resource have with new ones, which it gives to the stored ones.

    new: the type of each new one, and the format that its text declares.
    """
    current: str | None = resource.entity.attributes.get("format") if resource.entity is not None else None
    format = reduce(lambda common, one: common_format(common, *one), new, current)
    assert format is not None, "there is a new one"
    if current is not None and format != current:
        changes.load_versions(resource)
        changes.accepted_resources.add(resource.xid)  # stored documents need not be valid by what they declare
        for version in resource.live_versions():
            _set_format(version, format)
    return format


def _set_format(version: VersionDraft, format: str) -> None:
    type = type_of_schema(str(version.attributes.get("format", "")), version.confluent)
    version.write({"format": format}, patch=True)
    version.confluent = with_facts(version.confluent, type=type if is_mixed(format) else None)


def add_schema_version(
    changes: ChangeSet, resource: ResourceDraft, subject: Subject, format: str, new: NewSchemaVersion
) -> VersionDraft:
    """Adds a Version. format: that of all Versions, as `set_common_format` returns it."""
    tree: dict[str, Any] = {"format": format, "contenttype": CONTENT_TYPES[new.type]}
    if xids.entity_id(resource.xid) != subject.name and fits_in_header("name", subject.name):
        tree["name"] = subject.name
    if new.createdat is not None:
        tree["createdat"] = new.createdat
    versionid = _free_versionid(changes, resource, new.number)
    options = WriteOptions(False, CONTENT_TYPES[new.type], keepids=True)
    version = write_version(changes, resource, versionid, tree, options, new.text.encode())
    if resource.type.versionmode == "manual" and new.ancestor is not None:
        version.ancestor = new.ancestor
    resource.counter = max(resource.counter, int(versionid))
    type = new.type if is_mixed(format) else None
    version.confluent = with_facts(new.facts, number=new.number, type=type, accepted=True)
    changes.processed.append(version.xid)
    return version


def _free_versionid(changes: ChangeSet, resource: ResourceDraft, number: int) -> str:
    versionid = number
    while str(versionid) in resource.versions or changes.world.get(f"{resource.xid}/versions/{versionid}") is not None:
        versionid += 1
    return str(versionid)
