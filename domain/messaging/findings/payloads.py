"""Payload schemas of messages: inline or by reference, their format, and the targets of references.

Spec: message 1.0-rc4, "dataschemaformat" to "datacontenttype"; schema 1.0-rc4, "Schema Formats". Rules MS-60 to 66,
SC-20.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from annals.domain import formats
from annals.domain.messaging.findings import names
from annals.domain.messaging.findings.finding import Finding, ValidatedEntity, is_xid
from annals.domain.messaging.findings.unchecked_values import as_text, as_texts, parse_media_type
from annals.domain.values import xid as xids
from annals.domain.values.json_text import dumps

_SCHEMAGROUPS: Final = "/schemagroups/"
_DETAILS: Final = "$details"
#: The maximum length of an id.
_MAX_ID_LENGTH: Final = 128


class ResolvedSchema(NamedTuple):
    """The schema or Version that a reference names. suffix: the definition in its document that the reference means."""

    xid: str
    suffix: str
    attributes: Mapping[str, Any]


def resolve_schema(reference: str, find_entity: Callable[[str], Mapping[str, Any] | None]) -> ResolvedSchema | None:
    """The target of a local reference; None if it does not exist (SC-20).

    Ids may contain colons, so a longer id that exists has precedence over a shorter one before a colon.
    """
    fragment = reference.partition("#")[2]
    for xid, suffix in schema_candidates(reference):
        attributes = find_entity(xid)
        if attributes is not None:
            return ResolvedSchema(xid, fragment or suffix, attributes)
    return None


def referenced_xids(attributes: Mapping[str, Any]) -> Iterator[str]:
    """The xids that the rules for an endpoint or a message read, so that a store can read them in one query."""
    for name in ("basemessageuri", "dataschemaxid"):
        if is_xid(xid_reference := as_text(attributes.get(name)) or ""):
            yield xid_reference
    for xid, _ in schema_candidates(as_text(attributes.get("dataschemauri")) or ""):
        yield xid
    yield from filter(is_xid, as_texts(attributes.get("messagegroups")))


def schema_candidates(reference: str) -> Iterator[tuple[str, str]]:
    """The entities that a local reference may name, each with the rest of the reference, the longest id first."""
    path = reference.partition("#")[0]
    if not path.startswith(_SCHEMAGROUPS):
        return
    segments = list(xids.segments(path))
    id_index = 6 if segments[4:5] == ["versions"] else 4
    parents, id, remaining = segments[: id_index - 1], "".join(segments[id_index - 1 : id_index]), segments[id_index:]
    id = id.removesuffix(_DETAILS) if not remaining else id
    colons = [index for index in range(min(len(id) - 1, _MAX_ID_LENGTH), 0, -1) if id[index] == ":"]
    for end in [*([len(id)] if not remaining else []), *colons]:
        xid = xids.join(*parents, id[:end])
        if is_xid(xid):
            yield xid, "/".join([id[end + 1 :], *remaining])


def schema_has_a_format(subject: ValidatedEntity) -> Iterator[Finding]:
    """MS-60, MS-61: a schema is inline or by reference, and has a named format."""
    attributes = subject.attributes
    if "dataschema" in attributes and "dataschemauri" in attributes:
        yield subject.must("MS-60", "it cannot be combined with dataschema", "dataschemauri")
    format = as_text(attributes.get("dataschemaformat"))
    if format is None and ("dataschema" in attributes or "dataschemauri" in attributes):
        yield subject.must("MS-60", "it is missing: the message has a schema", "dataschemaformat")
    if format is not None and not names.is_versioned(format):
        yield subject.must("MS-61", "it is not <NAME>/<VERSION>", "dataschemaformat")


def xid_is_of_a_schema(subject: ValidatedEntity) -> Iterator[Finding]:
    """MS-62, MS-63: the xid is that of a schema, and the URI next to it has the same target."""
    xid, uri = subject.text("dataschemaxid"), subject.text("dataschemauri")
    if xid is None:
        return
    if not is_xid(xid) or xids.type_of(xid) not in ("schemagroups.schemas", "schemagroups.schemas.versions"):
        yield subject.must("MS-62", "it is not the xid of a schema or of a Version of one", "dataschemaxid")
    elif subject.find(xid) is None:
        yield subject.should("MS-62", "the schema does not exist", "dataschemaxid")
    if uri is not None and not _is_self(uri, xid):
        yield subject.must("MS-63", "it is not the URL of the entity in dataschemaxid", "dataschemauri")


def uri_leads_to_a_schema(subject: ValidatedEntity) -> Iterator[Finding]:
    """MS-64, SC-20: a local reference finds a schema of the same format; Protobuf needs the name of a message."""
    uri, format = (
        subject.text("dataschemauri"),
        subject.text("dataschemaformat") or "",
    )
    if uri is None:
        return
    schema = resolve_schema(uri, subject.find) if uri.startswith(_SCHEMAGROUPS) else None
    if uri.startswith(_SCHEMAGROUPS) and schema is None:
        yield subject.should("MS-64", "the schema does not exist", "dataschemauri")
    if schema is not None and format and str(schema.attributes.get("format", "")).casefold() != format.casefold():
        yield subject.should("MS-64", "the schema has another format", "dataschemauri")
    if format.casefold().startswith("protobuf/") and not (schema.suffix if schema else _has_suffix(uri)):
        yield subject.must("SC-20", "it has to end with the name of a message, as #<name> or :<name>", "dataschemauri")


def inline_schema_is_valid(subject: ValidatedEntity) -> Iterator[Finding]:
    """MS-65: an inline schema of a known format is valid in it."""
    schema = inline_schema(subject.attributes)
    if schema is None:
        return
    name, document = schema
    if document is None:
        yield subject.must("MS-65", "a schema of this format has to be a string", "dataschema")
    elif (reason := subject.check_schema(name, document)) is not None:
        yield subject.must("MS-65", f"it is not a schema of its format: {reason}", "dataschema")


def inline_schema(attributes: Mapping[str, Any]) -> tuple[str, bytes | None] | None:
    """The format and the document of an inline schema. The document is None if it has to be a string and is not.

    The result is None if there is nothing to check: no schema, or an unknown format.
    """
    name, schema = as_text(attributes.get("dataschemaformat")), attributes.get("dataschema")
    format_module = formats.find_format(name) if name and schema is not None else None
    if format_module is None or name is None:
        return None
    if not format_module.is_text:
        return name, dumps(schema)
    return name, schema.encode() if isinstance(schema, str) else None


def datacontenttype_is_media_type(subject: ValidatedEntity) -> Iterator[Finding]:
    """MS-66: a media type, as RFC 2046 defines it."""
    type = subject.text("datacontenttype")
    if type is not None and parse_media_type(type) is None:
        yield subject.must("MS-66", "it is not a media type", "datacontenttype")


def _is_self(uri: str, xid: str) -> bool:
    """Whether a URL, absolute or from the root, is the `self` of an entity, or names a definition in it."""
    path = urlsplit(uri).path if not uri.startswith("/") else uri.partition("#")[0]
    self_paths = (xid, xid + _DETAILS)
    if uri.startswith("/"):
        return path in self_paths or any(path.startswith(self_path + ":") for self_path in self_paths)
    index = path.rfind(xid)
    return index >= 0 and (
        path[index:] in self_paths or any(path[index:].startswith(self_path + ":") for self_path in self_paths)
    )


def _has_suffix(uri: str) -> bool:
    """Whether a reference to another registry names a definition."""
    path, _, fragment = uri.partition("#")
    return bool(fragment) or ":" in path.rpartition("/")[2]
