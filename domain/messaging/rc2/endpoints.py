"""Translates endpoint documents of xRegistry 1.0-rc2 to 1.0-rc4.

The texts and models of 1.0-rc2 disagreed in places, so all their spellings are accepted. What only an operator can
decide, such as a forbidden combination of roles, stays unchanged; the ordinary checks report it.
Spec: endpoint 1.0-rc2 and 1.0-rc4, "Endpoints Groups", "Protocol Options".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from annals.domain.messaging.findings import names
from annals.domain.messaging.rc2.document_editor import (
    DialectMismatch,
    DocumentChange,
    ObjectEditor,
    TranslatedDocument,
)
from annals.domain.values.json_text import Json

NAME: Final = "endpoint-1.0-rc2"
_SPECVERSION: Final = "1.0-rc2"

#: Members of a registry document that belong to the registry itself; an import ignores them.
_REGISTRY_ATTRIBUTES: Final = (
    *("$schema", "specversion", "registryid", "self", "shortself", "xid", "epoch", "name", "description", "icon"),
    *("documentation", "labels", "createdat", "modifiedat", "capabilities", "model", "modelsource"),
)
#: Members that distinguish a registry document from a map of endpoints.
_IDENTIFYING_MEMBERS: Final = frozenset({"specversion", "registryid", "endpoints", "messagegroups", "schemagroups"})
_KAFKA: Final = "kafka"
_AMQP: Final = "amqp/1.0"
_MQTT5: Final = "mqtt/5.0"
_NATS: Final = "nats"


class _Rename(NamedTuple):
    old: str
    new: str
    reason: str
    protocols: frozenset[str] | None = None  # lower case; None: all


#: Members of `protocoloptions`.
_OPTION_RENAMES: Final = (
    _Rename("linkproperties", "link-properties", "AMQP's own spelling", frozenset({_AMQP})),
    _Rename("connectionproperties", "connection-properties", "AMQP's own spelling", frozenset({_AMQP})),
    _Rename("distributionmode", "distribution-mode", "AMQP's own spelling", frozenset({_AMQP})),
    _Rename("cleansession", "cleanstart", "MQTT 5.0 names the flag so", frozenset({_MQTT5})),
)
#: Members of `protocoloptions` that define what a subscriber receives.
_FILTER_RENAMES: Final = (
    _Rename("topic", "topicfilter", "subscribers have a filter instead of a topic", frozenset({_MQTT5, "mqtt/3.1.1"})),
    _Rename("subject", "subjectfilter", "subscribers have a filter instead of a subject", frozenset({_NATS})),
)
_MESSAGE_RENAMES: Final = (
    _Rename("basemessageurl", "basemessageuri", "renamed"),
    _Rename("basemessage", "basemessageuri", "the name in the text; the model has another one"),
    _Rename("ancestor", "ancestorid", "renamed"),
)
#: Members with references that were fragments of the document: each names an entity of this registry.
_REFERENCE_ATTRIBUTES: Final = ("basemessageuri", "dataschemauri")
#: Members of a meta that no longer exist.
_META_ATTRIBUTES: Final = ("compatibilityauthority", "validation")
_SECURITY_PROTOCOLS: Final = frozenset({"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"})


def translate(document: Json) -> TranslatedDocument:
    """A registry document, or a map of endpoints, as a write of Groups in the current form.

    Raises: DialectMismatch.
    """
    if not isinstance(document, dict):
        raise DialectMismatch("a document has to be a JSON object")
    version = document.get("specversion", _SPECVERSION)
    if version != _SPECVERSION:
        raise DialectMismatch(f'"specversion" is {version!r}, but this dialect is for {_SPECVERSION}')
    changes: list[DocumentChange] = []
    is_registry = not _IDENTIFYING_MEMBERS.isdisjoint(document)
    root = ObjectEditor(document if is_registry else {"endpoints": document}, "", changes)
    if is_registry:
        root.drop(_REGISTRY_ATTRIBUTES, "an import does not change the registry itself")
    for plural, edit_group in _GROUP_EDITORS.items():
        for key, group in root.objects_by_key(plural):
            group.path = group.path if is_registry else "/" + group.path.split("/", 2)[2]
            group.members.pop("epoch", None)
            edit_group(key, group)
    return TranslatedDocument(root.members, tuple(changes))


def _edit_endpoint(_: str, endpoint: ObjectEditor) -> None:
    usage = endpoint.members.get("usage")
    if isinstance(usage, str):
        endpoint.change(("usage",), {"usage": [usage]}, "roles have to be a list")
    _strip_fragments(endpoint, "messagegroups")
    protocol = _canonical_protocol(endpoint.members)
    options = endpoint.nested_object("protocoloptions")
    if options is not None:
        _edit_options(options, protocol, endpoint.members.get("usage"))
    _edit_messages(_, endpoint)


def _edit_messages(_: str, group: ObjectEditor) -> None:
    for _key, message in group.objects_by_key("messages"):
        _edit_resource(message, _edit_message)


def _edit_schemas(_: str, group: ObjectEditor) -> None:
    for _key, schema in group.objects_by_key("schemas"):
        _edit_resource(schema, lambda version: _rename_members(version, _MESSAGE_RENAMES[-1:]))


#: The edits of each Group of a type, given its id.
_GROUP_EDITORS: Final[Mapping[str, Callable[[str, ObjectEditor], None]]] = {
    "endpoints": _edit_endpoint,
    "messagegroups": _edit_messages,
    "schemagroups": _edit_schemas,
}


def _edit_resource(resource: ObjectEditor, edit_entity: Callable[[ObjectEditor], None]) -> None:
    """Edits a Resource with its meta and its Versions.

    Epochs of another registry are dropped, because they are invalid here.
    """
    resource.members.pop("epoch", None)
    edit_entity(resource)
    if (meta := resource.nested_object("meta")) is not None:
        meta.members.pop("epoch", None)
        meta.drop(_META_ATTRIBUTES, "the attribute no longer exists")
        if meta.members.get("compatibility") == "none":
            meta.drop(("compatibility",), "without compatibility, the attribute is absent")
    for _, version in resource.objects_by_key("versions"):
        version.members.pop("epoch", None)
        edit_entity(version)


def _edit_message(message: ObjectEditor) -> None:
    _rename_members(message, _MESSAGE_RENAMES)
    for name in _REFERENCE_ATTRIBUTES:
        _strip_fragment(message, name)
    protocol = message.members.get("protocol")
    canonical_name = (
        names.canonical_protocol(protocol)
        if isinstance(protocol, str) and not names.selects_options(protocol)
        else None
    )
    if canonical_name is not None and "protocoloptions" in message.members:
        message.change(("protocol",), {"protocol": canonical_name}, "a message has options under this name only")
    metadata = message.nested_object("envelopemetadata")
    if metadata is not None:
        _flatten_metadata(metadata)


def _flatten_metadata(metadata: ObjectEditor) -> None:
    """Moves declarations out of the member `attributes`.

    If it is not a map of declarations, it declares an attribute itself.
    """
    declarations = metadata.members.get("attributes")
    if not isinstance(declarations, dict) or not all(
        isinstance(declaration, dict) for declaration in declarations.values()
    ):
        return
    if declarations.keys().isdisjoint(metadata.members):
        metadata.change(("attributes",), declarations, "attributes are declared without a level in between")


# --- protocol options ----------------------------------------------------------------------------------------------


def _edit_options(options: ObjectEditor, protocol: str, usage: Json) -> None:
    nested = options.members.get("options")
    if isinstance(nested, dict) and nested.keys().isdisjoint(options.members.keys() - {"options"}):
        options.change(("options",), nested, "options are members of protocoloptions themselves")
    _rename_members(options, _OPTION_RENAMES, protocol)
    if isinstance(usage, list) and "subscriber" in usage and "producer" not in usage:
        _rename_members(options, _FILTER_RENAMES, protocol)
    if isinstance(options.members.get("authorization"), dict):
        new_members = {"authorization": [options.members["authorization"]]}
        options.change(("authorization",), new_members, "authorization options have to be a list")
    for authorization in options.objects("authorization"):
        authorization.rename("resourceurl", "resourceuri", "renamed")
    for address in options.objects("endpoints"):
        address.rename("url", "uri", "renamed")
        if protocol == _KAFKA:
            _edit_kafka_address(address)


def _edit_kafka_address(address: ObjectEditor) -> None:
    """Rewrites a Kafka address as a list of servers; the security protocol becomes a separate member."""
    uri = address.members.get("uri")
    if not isinstance(uri, str) or "bootstrap.servers" in address.members:
        return
    scheme, _, servers = uri.rpartition("://")
    if scheme.upper() not in _SECURITY_PROTOCOLS | {"KAFKA", ""}:
        return
    new_members: dict[str, Json] = {"bootstrap.servers": servers.rstrip("/").split(",")}
    if scheme.upper() in _SECURITY_PROTOCOLS and "security.protocol" not in address.members:
        new_members["security.protocol"] = scheme.upper()
    address.change(("uri",), new_members, "Kafka addresses are bootstrap servers")


# --- shared --------------------------------------------------------------------------------------------------------


def _canonical_protocol(members: Mapping[str, Json]) -> str:
    """The canonical name of a protocol in lower case; empty if none is stated."""
    protocol = members.get("protocol")
    name = protocol if isinstance(protocol, str) else ""
    return (names.canonical_protocol(name) or name).lower()


def _rename_members(object: ObjectEditor, renames: tuple[_Rename, ...], protocol: str = "") -> None:
    for rename in renames:
        if rename.protocols is None or protocol in rename.protocols:
            object.rename(rename.old, rename.new, rename.reason)


def _strip_fragment(object: ObjectEditor, name: str) -> None:
    value = object.members.get(name)
    if isinstance(value, str) and value.startswith("#/"):
        object.change((name,), {name: value[1:]}, "entities of this registry are named by their xid")


def _strip_fragments(object: ObjectEditor, name: str) -> None:
    value = object.members.get(name)
    if isinstance(value, list) and any(
        isinstance(reference, str) and reference.startswith("#/") for reference in value
    ):
        references = [
            reference[1:] if isinstance(reference, str) and reference.startswith("#/") else reference
            for reference in value
        ]
        object.change((name,), {name: references}, "entities of this registry are named by their xid")
