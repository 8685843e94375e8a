"""The document checks that a write will most likely need, found before it is decided.

Only the decision knows all of them, because a format may be stored already or result from a Group's constraints. But an
import states its formats, and a registration its type. If these checks run beforehand, they are decided only once.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from annals.domain import formats
from annals.domain.confluent.checks import ContentCheck, SchemaDocument, content_check
from annals.domain.confluent.commands import RegisterSchema
from annals.domain.confluent.schema_types import AVRO, common_format, type_of_format
from annals.domain.confluent.subjects import RESOURCES
from annals.domain.decisions.changes.documents import digest, encode_document
from annals.domain.decisions.checks.document_checks import DocumentCheck, FormatCheck
from annals.domain.decisions.commands import SubmittedCommand, WriteTree
from annals.domain.model import GroupType, Model, ResourceType
from annals.domain.values import xid as xids
from annals.domain.values.json_text import Json


def expected_checks(command: SubmittedCommand, model: Model) -> tuple[frozenset[DocumentCheck], dict[str, bytes]]:
    """The checks that a command will most likely need, and the document bytes by SHA-256. They may be none."""
    if isinstance(command, WriteTree):
        return _checks_of_tree(command, model)
    if isinstance(command, RegisterSchema):
        return _checks_of_registration(command)
    return frozenset(), {}


def _checks_of_registration(command: RegisterSchema) -> tuple[frozenset[DocumentCheck], dict[str, bytes]]:
    """The checks of a schema for a new subject. Other types than Avro declare their formats in the text."""
    schema, content = command.schema, command.schema.text.encode()
    sha256 = digest(content)
    if schema.type != AVRO or schema.references or sha256 is None:
        return frozenset(), {}
    check = content_check(SchemaDocument(AVRO, sha256), schema.extras, normalizes=command.normalize)
    return frozenset((check, FormatCheck(common_format(None, AVRO, None).lower(), sha256))), {sha256: content}


def _checks_of_tree(command: WriteTree, model: Model) -> tuple[frozenset[DocumentCheck], dict[str, bytes]]:
    """The checks of the documents in a tree that states their formats, and the document bytes by SHA-256.

    A document given as JSON is replaced in the tree by its bytes, so that it is serialized once. model: of the last
    command; by that of this one, it may be an attribute (see `take_document`).
    """
    documents: dict[str, bytes] = {}
    document_checks: set[DocumentCheck] = set()
    for type, version in _version_trees(command, model):
        name = version.get("format")
        if not (type.hasdocument and type.validateformat):
            continue
        if not isinstance(name, str) or formats.find_format(name) is None:
            continue
        content = (
            command.document if command.document is not None else _document_content(type, version, command.mediatype)
        )
        sha256 = digest(content) if content is not None else None
        if content is not None and sha256 is not None:
            documents[sha256] = content
            document_checks.add(FormatCheck(name.lower(), sha256))
            if type.plural == RESOURCES and (schema_type := type_of_format(name)) is not None:
                document_checks.add(ContentCheck(SchemaDocument(schema_type, sha256)))
    return frozenset(document_checks), documents


def _document_content(type: ResourceType, version: MutableMapping[str, Json], mediatype: str) -> bytes | None:
    """The bytes of a Version's document; None if it has none, or none that can be determined without the decision."""
    inline, encoded = version.get(type.singular), version.get(type.singular + "base64")
    if isinstance(encoded, str):
        try:
            return b64decode(encoded, validate=True)
        except (ValueError, binascii.Error):
            return None
    if isinstance(inline, str):
        contenttype = version.get("contenttype") or mediatype
        return encode_document(inline, type.document_form(contenttype if isinstance(contenttype, str) else None))
    if inline is None or isinstance(inline, bytes):
        return None
    content = version[type.singular] = encode_document(inline, "json")
    return content


def _version_trees(command: WriteTree, model: Model) -> Iterator[tuple[ResourceType, dict[str, Any]]]:
    """Every part of a tree that describes a Version, as far as the tree is well-formed."""
    segments, tree = xids.segments(command.xid), command.tree
    group = model.groups.get(segments[0]) if segments else None
    type = group.resources.get(segments[2]) if group and len(segments) > 2 else None
    if not segments:
        for plural, group_type in model.groups.items():
            for entry in _member_objects(tree.get(plural)):
                yield from _trees_of_group(group_type, entry)
    elif group and len(segments) < 3:
        for entry in (tree,) if len(segments) == 2 else _member_objects(tree):
            yield from _trees_of_group(group, entry)
    elif type and len(segments) < 5:
        for entry in (tree,) if len(segments) == 4 else _member_objects(tree):
            yield from _trees_of_resource(type, entry)
    elif type and segments[4] == "versions":
        for entry in (tree,) if len(segments) == 6 else _member_objects(tree):
            yield from _trees_of_resource(type, entry)


def _trees_of_group(group: GroupType, tree: Mapping[str, Json]) -> Iterator[tuple[ResourceType, dict[str, Any]]]:
    for plural, type in group.resources.items():
        for entry in _member_objects(tree.get(plural)):
            yield from _trees_of_resource(type, entry)


def _trees_of_resource(type: ResourceType, tree: Any) -> Iterator[tuple[ResourceType, dict[str, Any]]]:
    yield type, tree
    for entry in _member_objects(tree.get("versions")):
        yield type, entry


def _member_objects(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for entry in value.values():
            if isinstance(entry, dict):
                yield entry
