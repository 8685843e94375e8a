"""Request bodies of the legacy APIs as commands: Groups, and documents with their attributes.

Rules LEG-204, LEG-205, LEG-504, LEG-512, LEG-603, LEG-801 to LEG-804.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from annals.domain.compat import formats, uris
from annals.domain.compat.catalog import attributes as catalog
from annals.domain.compat.catalog import documents, groups
from annals.domain.compat.document_attributes import DocumentAttributes, request_names
from annals.domain.compat.errors import invalid_definition
from annals.domain.compat.ids import decode_segment, to_legacy_id
from annals.domain.compat.legacy_apis import MESSAGECATALOG, SCHEMAREGISTRY, LegacyApi
from annals.domain.compat.request_extras import LegacyWrite
from annals.domain.decisions.commands import WriteMethod, WriteTree
from annals.domain.model.validation.values import MAX_HEADER_BYTES, fits_in_header
from annals.domain.values import xid as xids

#: Members of a Group's body that the server sets; their values in a request are ignored.
_SERVER_MEMBERS: Final = frozenset(("createdtimeutc", "updatedtimeutc"))


def group_command(family: LegacyApi, xid: str, base_url: str, body: Mapping[str, Any]) -> WriteTree:
    """The command of a PUT of a Group. base_url: absolute URL of the legacy API. Raises: InvalidDefinition."""
    schemas = family is SCHEMAREGISTRY
    parsers = {
        "id": _parse_text,
        "format": _parse_text,
        "description": _parse_text,
        **({"groupProperties": _parse_texts} if schemas else {}),
    }
    members = {name: _parse_member(parsers, name, value) for name, value in body.items() if name not in _SERVER_MEMBERS}
    members = {name: value for name, value in members.items() if value is not None}
    _check_id(xid, members.pop("id", None))
    format = members.get("format")
    if format == "" or (format is None and not schemas):
        raise invalid_definition(
            "format", "it is required" if not schemas else "leave it out, or give a value that is not empty", "LEG-204"
        )
    _check_header_size("format", format)
    tree: dict[str, Any] = {"description": members["description"]} if "description" in members else {}
    if "groupProperties" in members:
        tree["labels"] = members["groupProperties"]
    if format is not None:
        tree |= {"format": formats.registry_format(format)} if schemas else groups.to_attributes(format)
    return WriteTree(xid, tree, WriteMethod.PUT, facade=LegacyWrite(family, base_url, format=format))


def schema_command(
    xid: str, base_url: str, attributes: DocumentAttributes, content: bytes, contenttype: str | None
) -> WriteTree:
    """The command of a POST of a schema. Raises: InvalidDefinition."""
    tree: dict[str, Any] = {"contenttype": contenttype}
    if attributes.description is not None:
        tree["description"] = attributes.description
    if attributes.format is not None:
        tree["format"] = formats.registry_format(attributes.format)
    facade = _legacy_write(SCHEMAREGISTRY, base_url, attributes)
    return WriteTree(xid, tree, WriteMethod.POST, document=content, mediatype=contenttype or "", facade=facade)


def message_command(
    xid: str,
    base_url: str,
    attributes: DocumentAttributes,
    content: bytes,
    contenttype: str | None,
    format: str,
    find_schema: catalog.FindSchema,
) -> WriteTree:
    """The command of a POST of a message definition.

    format: of its Group. find_schema: finds schemas of this registry by URI.
    Raises: InvalidDefinition, with the place in the document that breaks a rule.
    """
    if attributes.format not in (None, format):
        raise invalid_definition("format", f'the format of the group is "{format}"', "LEG-801")
    try:
        definition = documents.parse_definition(format, content)
    except documents.MalformedDefinition as error:
        raise invalid_definition(error.pointer or "document", error.text, "LEG-801 to LEG-804") from None
    _check_header_size("contenttype", contenttype)
    mapped = catalog.to_attributes(format, definition.document, find_schema)
    description = attributes.description if attributes.description is not None else definition.description
    tree = {**mapped.attributes, **({"description": description} if description is not None else {})}
    facade = _legacy_write(MESSAGECATALOG, base_url, attributes)
    facade = replace(facade, format=format, content=content, contenttype=contenttype, leftovers=mapped.leftovers)
    return WriteTree(xid, tree, WriteMethod.POST, facade=facade)


def _legacy_write(family: LegacyApi, base_url: str, attributes: DocumentAttributes) -> LegacyWrite:
    """Raises: InvalidDefinition for an authority or id that is no URI (LEG-603), and for one too long for a header."""
    for name, (parameter, _) in request_names(family).items():
        _check_header_size(parameter, getattr(attributes, name))
    _check_member("authority", attributes.authority, uris.check_uri)
    _check_member("id", attributes.id, uris.check_reference)
    return LegacyWrite(family, base_url, attributes.authority, attributes.id, attributes.format, attributes.about)


def _check_member(name: str, value: str | None, check: Callable[[str], str]) -> None:
    try:
        if value is not None:
            check(value)
    except ValueError as error:
        raise invalid_definition(name, str(error), "LEG-603") from None


def _check_header_size(name: str, value: str | None) -> None:
    """Raises: InvalidDefinition for a value that exceeds a response header; registry attributes must fit in one."""
    if value is not None and not fits_in_header(name, value):
        raise invalid_definition(
            name, f"its name and value take more than {MAX_HEADER_BYTES} bytes", "LEG-503, LEG-522"
        )


def _check_id(xid: str, id: str | None) -> None:
    """Raises: InvalidDefinition if a body has another id than its path.

    Both may be percent-encoded, each in a different way.
    """
    if id is None:
        return
    expected_id = to_legacy_id(xids.entity_id(xid))
    try:
        is_same = decode_segment(id) == expected_id
    except ValueError:
        is_same = id == expected_id
    if not is_same:
        raise invalid_definition("id", "it differs from the id of the path", "LEG-204")


def _parse_member(parsers: Mapping[str, Callable[[str, Any], Any]], name: str, value: Any) -> Any:
    if name not in parsers:
        raise invalid_definition(
            name, f"the member is unknown; known members: {', '.join((*parsers, *sorted(_SERVER_MEMBERS)))}", "LEG-204"
        )
    return None if value is None else parsers[name](name, value)


def _parse_text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise invalid_definition(name, "a text is needed", "LEG-204")
    return value


def _parse_texts(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise invalid_definition(name, "an object of texts is needed", "LEG-204")
    return value
