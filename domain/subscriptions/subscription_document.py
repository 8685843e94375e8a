"""The document of a subscription: validated, with defaults, and with its secret values separated.

Spec: CloudEvents Subscriptions API, "Subscription object". Rules SUB-101 to SUB-108.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from annals.domain.errors.http_errors import QuotaExceeded
from annals.domain.model.validation import uris
from annals.domain.subscriptions import credentials, event_families, filters, sink_uris
from annals.domain.subscriptions.error_places import ErrorPlace, invalid_subscription
from annals.domain.subscriptions.member_types import choice_type, parse_line, parse_object, parse_time
from annals.domain.subscriptions.protocol_settings import HEADERS_PREFIX, SIGNINGKEY, is_secret_header, parse_settings
from annals.domain.subscriptions.sink_uris import HTTP, SinkAddress
from annals.domain.values.json_text import Json

#: The properties, in the order in which responses have them.
PROPERTIES: Final = (
    *("source", "types", "config", "filters"),
    *("sink", "sinkcredential", "protocol", "protocolsettings"),
)
#: Properties that the server sets; in a request they are ignored.
SERVER_PROPERTIES: Final = ("id", "status")
#: The suffix of the name of a URI whose query is stored as a secret (SUB-917).
QUERY_SUFFIX: Final = ".query"
#: The values of `startposition` other than a number.
START_WORDS: Final = ("earliest", "latest")
#: The description of the members of `config` for clients.
CONFIG_MEMBERS: Final[Mapping[str, Json]] = {
    "families": {"type": "array", "item": {"type": "string"}, "values": list(event_families.FAMILIES)},
    "startposition": {"type": "integer", "values": list(START_WORDS), "default": "latest"},
    "starttime": {"type": "timestamp"},
}


@dataclass(frozen=True, slots=True)
class SubscriptionSupport:
    """The capabilities of a server. protocols: the available ones. sources: the `source` of each family's events.

    plaintext: whether channels without TLS are allowed. filters: the maximum number of filters per subscription.
    """

    protocols: tuple[str, ...]
    sources: Mapping[str, str] = field(default_factory=dict)
    plaintext: bool = False
    filters: int = 20


@dataclass(frozen=True, slots=True)
class SubscriptionDocument:
    """A requested subscription. attributes: its public form. secrets: values by name.

    missing_secrets: names of secrets that are not given and must be stored already. dropped_secrets: names of secrets
    to remove. secret_binding: the destination, which must not change if stored secrets are used again.
    """

    attributes: Mapping[str, Json]
    secrets: Mapping[str, str] = field(repr=False)
    missing_secrets: frozenset[str]
    dropped_secrets: frozenset[str]
    secret_binding: tuple[object, ...]


def parse_subscription(body: Any, support: SubscriptionSupport) -> SubscriptionDocument:
    """The subscription of a document. Raises: InvalidSubscription, QuotaExceeded."""
    root = ErrorPlace()
    document = _canonical_properties(parse_object(body, root), root)
    attributes = parse_selection(document, support)
    protocol = _parse_protocol(document, support, root)
    sink = sink_uris.parse_sink(_required_member(document, "sink", root), protocol, root.child("sink"))
    if body.get("protocol") == "HTTPS" and not sink.tls:
        raise root.child("sink").error("scheme", "the protocol HTTPS needs a sink with https")
    credential_member = document.get("sinkcredential")
    place = root.child("sinkcredential")
    credential = None if credential_member is None else credentials.parse_credential(credential_member, protocol, place)
    place = root.child("protocolsettings")
    options = parse_settings(document.get("protocolsettings"), protocol, sink, credential is not None, place)
    attributes |= {"sink": document["sink"], "protocol": protocol, "protocolsettings": options}
    if credential is not None:
        attributes["sinkcredential"] = credential
    secret_values = _take_secrets(attributes)
    _check_channel(
        sink, options, credential is not None or any(name.startswith(HEADERS_PREFIX) for name in secret_values), support
    )
    return SubscriptionDocument(
        attributes={name: attributes[name] for name in PROPERTIES if name in attributes},
        secrets=secret_values,
        missing_secrets=_missing_secrets(credential, secret_values),
        dropped_secrets=_dropped_secrets(document.get("protocolsettings")),
        secret_binding=(protocol, *sink.secret_binding),
    )


def parse_selection(document: Mapping[str, Any], support: SubscriptionSupport) -> dict[str, Json]:
    """The members that select events: `source`, `types`, `config` and `filters`. Raises: as `parse_subscription`."""
    root = ErrorPlace()
    selection: dict[str, Json] = {}
    if "source" in document:
        selection["source"] = _parse_source(document["source"], support, root.child("source"))
    if "types" in document:
        selection["types"] = _parse_types(document["types"], root.child("types"))
    types, source = selection.get("types", ()), selection.get("source")
    selection["config"] = _parse_config(
        document.get("config", {}),
        event_families.families_in_scope(source, types, support.sources),
        root.child("config"),
    )
    excluded_families = set(event_families.families_of_types(types)) - set(selection["config"]["families"])
    if excluded_families:
        reason = f"types name the family {min(excluded_families)}; add it here"
        raise root.child("config", "families").error("value", reason)
    if document.get("filters", []) != []:
        selection["filters"] = _parse_filters(document["filters"], support)
    return selection


def parse_preview(
    body: Any, support: SubscriptionSupport, other_names: frozenset[str]
) -> tuple[dict[str, Json], dict[str, Any]]:
    """The members that select events, of a document that needs no sink, and the members named in `other_names`.

    Raises: as `parse_subscription`.
    """
    root = ErrorPlace()
    members = parse_object(body, root)
    document = _canonical_properties({name: value for name, value in members.items() if name not in other_names}, root)
    return parse_selection(document, support), {name: members[name] for name in other_names & members.keys()}


def _canonical_properties(members: dict[str, Any], place: ErrorPlace) -> dict[str, Any]:
    """The properties under their proper names. Raises: InvalidSubscription for unknown ones."""
    if "filter" in members:
        if "filters" in members:
            raise place.child("filter").error(
                "alias", "it is another name of filters, which is present too; remove one of them"
            )
        members["filters"] = _split_filter(members.pop("filter"), place.child("filter"))
    for name in members:
        if name not in PROPERTIES and name not in SERVER_PROPERTIES:
            raise place.child(name).error(
                "unknown", f"the property is unknown; known properties: {', '.join(PROPERTIES)}"
            )
    return {name: value for name, value in members.items() if name not in SERVER_PROPERTIES}


def _split_filter(filter_members: Any, place: ErrorPlace) -> list[Json]:
    """One filter for each member of `filter`, the property's name in older descriptions (SUB-106)."""
    if not isinstance(filter_members, dict):
        raise place.error("type", "an object is needed")
    if not filter_members:
        raise place.error("filter", "a filter needs a member, the name of its dialect")
    for name, value in filter_members.items():
        _check_filters([{name: value}], place.pointer, f"{place.pointer}/0")
    return [{name: value} for name, value in filter_members.items()]


def _required_member(document: Mapping[str, Any], name: str, place: ErrorPlace) -> Any:
    if name not in document:
        raise place.child(name).error("required", "it is needed")
    return document[name]


def _parse_protocol(document: Mapping[str, Any], support: SubscriptionSupport, place: ErrorPlace) -> str:
    text = _required_member(document, "protocol", place)
    text = HTTP if text == "HTTPS" else text
    protocol = str(choice_type(*sink_uris.PROTOCOLS).parse(text, place.child("protocol")))
    if protocol not in support.protocols:
        reason = f"{protocol} needs a client that is not installed here; use one of: {', '.join(support.protocols)}"
        raise place.child("protocol").error("protocolunavailable", reason)
    return protocol


def _parse_source(value: Any, support: SubscriptionSupport, place: ErrorPlace) -> str:
    """The `source` of the selected events; a slash at the end of one of our own is removed (SUB-103)."""
    text = parse_line(value, place)
    try:
        uris.reference(text)
    except ValueError as error:
        raise place.error("value", str(error)) from None
    return normalized_source(text, support)


def normalized_source(source: str, support: SubscriptionSupport) -> str:
    """A source as subscriptions store it: one of our own without a slash at its end (SUB-103)."""
    without_slash = source.rstrip("/")
    return without_slash if without_slash in support.sources.values() else source


def _parse_types(value: Any, place: ErrorPlace) -> list[Json]:
    if not isinstance(value, list):
        raise place.error("type", "an array is needed")
    if not value:
        raise place.error("value", "an array with at least one type is needed; leave it out for all types")
    return [parse_line(item, place.child(index)) for index, item in enumerate(value)]


def _parse_config(value: Any, default_families: list[str], place: ErrorPlace) -> dict[str, Json]:
    """`config` with its defaults. default_families: the families if none are named (SUB-107, SUB-111)."""
    members = parse_object(value, place)
    for name in members:
        if name not in CONFIG_MEMBERS:
            raise place.child(name).error("unknown", f"the key is unknown; known keys: {', '.join(CONFIG_MEMBERS)}")
    config: dict[str, Json] = {"families": default_families}
    if "families" in members:
        config["families"] = _parse_families(members["families"], place.child("families"))
    if "starttime" in members:
        if "startposition" in members:
            raise place.child("startposition").error("value", "it cannot be combined with starttime")
        return config | {"starttime": parse_time(members["starttime"], place.child("starttime"))}
    return config | {
        "startposition": _parse_position(members.get("startposition", "latest"), place.child("startposition"))
    }


def _parse_families(value: Any, place: ErrorPlace) -> list[Json]:
    items = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    if not isinstance(items, list):
        raise place.error("type", "an array is needed")
    if not items:
        raise place.error("value", "at least one family is needed")
    requested_families = [
        choice_type(*event_families.FAMILIES).parse(item, place.child(index)) for index, item in enumerate(items)
    ]
    return [family for family in event_families.FAMILIES if family in requested_families]


def _parse_position(value: Any, place: ErrorPlace) -> int | str:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 19:
        value = int(value)
    if value in START_WORDS:
        return str(value)
    if type(value) is not int or value < 0:
        raise place.error("value", f"a position of the log is needed, or {' or '.join(START_WORDS)}")
    return value


def _parse_filters(value: Any, support: SubscriptionSupport) -> list[Json]:
    if isinstance(value, list) and len(value) > support.filters:
        raise QuotaExceeded(
            error_detail=f"a subscription has at most {support.filters} filters",
            extensions={"code": "quotaexceeded", "pointer": "/filters"},
        )
    _check_filters(value, "/filters", "/filters")
    return list(value)


def _check_filters(filter_objects: Any, shown_pointer: str, pointer: str) -> None:
    """Raises: InvalidSubscription.

    shown_pointer: replaces `pointer` in errors if the client's document has another form.
    """
    try:
        filters.compile_filters(filter_objects, pointer.removesuffix("/0") if shown_pointer != pointer else pointer)
    except filters.FilterError as error:
        error_pointer = (
            shown_pointer + error.pointer.removeprefix(pointer) if error.pointer.startswith(pointer) else shown_pointer
        )
        raise invalid_subscription("filter", error_pointer, error.reason) from None


def _check_channel(
    sink: SinkAddress, options: Mapping[str, Json], sends_secret: bool, support: SubscriptionSupport
) -> None:
    """Checks TLS (SUB-306, SUB-905). Raises: InvalidSubscription."""
    if not sink.tls and not support.plaintext:
        raise invalid_subscription("plaintext", "/sink", "this server sends events over TLS only")
    if not sink.tls and sends_secret and not sink.is_loopback:
        raise invalid_subscription("plaintext", "/sink", "credentials are sent over TLS only")
    deadletter_uri = options["deadletter"].get("uri")
    if deadletter_uri is not None and not support.plaintext and not deadletter_uri.lower().startswith("https:"):
        raise invalid_subscription("plaintext", "/protocolsettings/deadletter/uri", "an https URL is needed")


def _take_secrets(attributes: dict[str, Json]) -> dict[str, str]:
    """Removes the secret values from a document and returns them; the document must consist of new objects."""
    secrets: dict[str, str] = {}
    options, credential = attributes["protocolsettings"], attributes.get("sinkcredential", {})
    for name in [name for name in credential if name in credentials.SECRET_MEMBERS]:
        secrets[credentials.PREFIX + name] = credential.pop(name)
    if "headers" in options:
        secrets |= {
            HEADERS_PREFIX + name.lower(): value for name, value in options["headers"].items() if is_secret_header(name)
        }
        options["headers"] = {name: value for name, value in options["headers"].items() if not is_secret_header(name)}
    if "signingkey" in options:
        secrets[SIGNINGKEY] = options.pop("signingkey")
    options["deadletter"] = dict(options["deadletter"])
    for owner, member, name in _uri_members(attributes):
        if member in owner and "?" in owner[member]:
            owner[member], _, secrets[name + QUERY_SUFFIX] = owner[member].partition("?")
    return secrets


def _uri_members(attributes: dict[str, Json]) -> tuple[tuple[dict[str, Json], str, str], ...]:
    """Each object with a URI, the member that holds it, and its name."""
    credential, deadletter = attributes.get("sinkcredential", {}), attributes["protocolsettings"]["deadletter"]
    return (
        (attributes, "sink", "sink"),
        (credential, credentials.ENDPOINT, credentials.PREFIX + credentials.ENDPOINT),
        (deadletter, "uri", "protocolsettings.deadletter.uri"),
    )


def _missing_secrets(credential: Mapping[str, Json] | None, secrets: Mapping[str, str]) -> frozenset[str]:
    if credential is None:
        return frozenset()
    names = (credentials.PREFIX + name for name in credentials.missing_secrets(credential))
    return frozenset(name for name in names if name not in secrets)


def _dropped_secrets(options: Any) -> frozenset[str]:
    """The secrets that are given as null. Responses do not show secrets, so an omitted secret stays."""
    headers = options.get("headers") if isinstance(options, dict) else None
    dropped_names = (
        {HEADERS_PREFIX + name.lower() for name, value in headers.items() if value is None} if headers else set()
    )
    if isinstance(options, dict) and "signingkey" in options and options["signingkey"] is None:
        dropped_names.add(SIGNINGKEY)
    return frozenset(dropped_names)
