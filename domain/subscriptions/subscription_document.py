"""The document of a subscription: validated, with defaults, and with its secret values separated.

Spec: CloudEvents Subscriptions API, "Subscription object". Rules SUB-101 to SUB-108.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from domain.errors.http_errors import QuotaExceeded
from domain.model import uris
from domain.subscriptions import credentials, event_families, filters, sink_uris
from domain.subscriptions.error_places import ErrorPlace, invalid_subscription
from domain.subscriptions.member_types import choice_type, parse_line, parse_object, parse_time
from domain.subscriptions.protocol_settings import HEADERS_PREFIX, SIGNINGKEY, is_secret_header, parse_settings
from domain.subscriptions.sink_uris import HTTP, SinkAddress
from domain.values.json_text import Json

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

    needed: names of secrets that are not given and must be stored already. dropped: names of secrets to remove.
    place: the destination, which must not change if stored secrets are used again.
    """

    attributes: Mapping[str, Json]
    secrets: Mapping[str, str] = field(repr=False)
    needed: frozenset[str]
    dropped: frozenset[str]
    place: tuple[object, ...]


def parse_subscription(body: Any, offer: SubscriptionSupport) -> SubscriptionDocument:
    """The subscription of a document. Raises: InvalidSubscription, QuotaExceeded."""
    root = ErrorPlace()
    given = _canonical_properties(parse_object(body, root), root)
    found = parse_selection(given, offer)
    protocol = _protocol(given, offer, root)
    sink = sink_uris.parse_sink(_required(given, "sink", root), protocol, root.at("sink"))
    if body.get("protocol") == "HTTPS" and not sink.tls:
        raise root.at("sink").error("scheme", "the protocol HTTPS needs a sink with https")
    given_credential = given.get("sinkcredential")
    place = root.at("sinkcredential")
    credential = None if given_credential is None else credentials.parse_credential(given_credential, protocol, place)
    place = root.at("protocolsettings")
    options = parse_settings(given.get("protocolsettings"), protocol, sink, credential is not None, place)
    found |= {"sink": given["sink"], "protocol": protocol, "protocolsettings": options}
    if credential is not None:
        found["sinkcredential"] = credential
    secrets = _take_secrets(found)
    _check_channel(
        sink, options, credential is not None or any(name.startswith(HEADERS_PREFIX) for name in secrets), offer
    )
    return SubscriptionDocument(
        attributes={name: found[name] for name in PROPERTIES if name in found},
        secrets=secrets,
        needed=_needed(credential, secrets),
        dropped=_dropped(given.get("protocolsettings")),
        place=(protocol, *sink.secret_binding),
    )


def parse_selection(given: Mapping[str, Any], offer: SubscriptionSupport) -> dict[str, Json]:
    """The members that select events: `source`, `types`, `config` and `filters`. Raises: as `parse_subscription`."""
    root = ErrorPlace()
    found: dict[str, Json] = {}
    if "source" in given:
        found["source"] = _source(given["source"], offer, root.at("source"))
    if "types" in given:
        found["types"] = _types(given["types"], root.at("types"))
    types, source = found.get("types", ()), found.get("source")
    found["config"] = _config(
        given.get("config", {}), event_families.families_in_scope(source, types, offer.sources), root.at("config")
    )
    left_out = set(event_families.families_of_types(types)) - set(found["config"]["families"])
    if left_out:
        reason = f"types name the family {min(left_out)}; add it here"
        raise root.at("config", "families").error("value", reason)
    if given.get("filters", []) != []:
        found["filters"] = _filters(given["filters"], offer)
    return found


def parse_preview(
    body: Any, offer: SubscriptionSupport, beside: frozenset[str]
) -> tuple[dict[str, Json], dict[str, Any]]:
    """The members that select events, of a document that needs no sink, and the members named in `beside`.

    Raises: as `parse_subscription`.
    """
    root = ErrorPlace()
    members = parse_object(body, root)
    given = _canonical_properties({name: value for name, value in members.items() if name not in beside}, root)
    return parse_selection(given, offer), {name: members[name] for name in beside & members.keys()}


def _canonical_properties(members: dict[str, Any], place: ErrorPlace) -> dict[str, Any]:
    """The properties under their proper names. Raises: InvalidSubscription for unknown ones."""
    if "filter" in members:
        if "filters" in members:
            raise place.at("filter").error(
                "alias", "it is another name of filters, which is present too; remove one of them"
            )
        members["filters"] = _split(members.pop("filter"), place.at("filter"))
    for name in members:
        if name not in PROPERTIES and name not in SERVER_PROPERTIES:
            raise place.at(name).error("unknown", f"the property is unknown; known properties: {', '.join(PROPERTIES)}")
    return {name: value for name, value in members.items() if name not in SERVER_PROPERTIES}


def _split(given: Any, place: ErrorPlace) -> list[Json]:
    """One filter for each member of `filter`, the property's name in older descriptions (SUB-106)."""
    if not isinstance(given, dict):
        raise place.error("type", "an object is needed")
    if not given:
        raise place.error("filter", "a filter needs a member, the name of its dialect")
    for name, value in given.items():
        _compiled([{name: value}], place.pointer, f"{place.pointer}/0")
    return [{name: value} for name, value in given.items()]


def _required(given: Mapping[str, Any], name: str, place: ErrorPlace) -> Any:
    if name not in given:
        raise place.at(name).error("required", "it is needed")
    return given[name]


def _protocol(given: Mapping[str, Any], offer: SubscriptionSupport, place: ErrorPlace) -> str:
    text = _required(given, "protocol", place)
    text = HTTP if text == "HTTPS" else text
    found = str(choice_type(*sink_uris.PROTOCOLS).parse(text, place.at("protocol")))
    if found not in offer.protocols:
        reason = f"{found} needs a client that is not installed here; use one of: {', '.join(offer.protocols)}"
        raise place.at("protocol").error("protocolunavailable", reason)
    return found


def _source(given: Any, offer: SubscriptionSupport, place: ErrorPlace) -> str:
    """The `source` of the selected events; a slash at the end of one of our own is removed (SUB-103)."""
    text = parse_line(given, place)
    try:
        uris.reference(text)
    except ValueError as error:
        raise place.error("value", str(error)) from None
    own = text.rstrip("/")
    return own if own in offer.sources.values() else text


def _types(given: Any, place: ErrorPlace) -> list[Json]:
    if not isinstance(given, list):
        raise place.error("type", "an array is needed")
    if not given:
        raise place.error("value", "an array with at least one type is needed; leave it out for all types")
    return [parse_line(each, place.at(index)) for index, each in enumerate(given)]


def _config(given: Any, own: list[str], place: ErrorPlace) -> dict[str, Json]:
    """`config` with its defaults. own: the families if none are named (SUB-107, SUB-111)."""
    members = parse_object(given, place)
    for name in members:
        if name not in CONFIG_MEMBERS:
            raise place.at(name).error("unknown", f"the key is unknown; known keys: {', '.join(CONFIG_MEMBERS)}")
    found: dict[str, Json] = {"families": own}
    if "families" in members:
        found["families"] = _families(members["families"], place.at("families"))
    if "starttime" in members:
        if "startposition" in members:
            raise place.at("startposition").error("value", "it cannot be combined with starttime")
        return found | {"starttime": parse_time(members["starttime"], place.at("starttime"))}
    return found | {"startposition": _position(members.get("startposition", "latest"), place.at("startposition"))}


def _families(given: Any, place: ErrorPlace) -> list[Json]:
    several = [part.strip() for part in given.split(",")] if isinstance(given, str) else given
    if not isinstance(several, list):
        raise place.error("type", "an array is needed")
    if not several:
        raise place.error("value", "at least one family is needed")
    named = [choice_type(*event_families.FAMILIES).parse(each, place.at(index)) for index, each in enumerate(several)]
    return [family for family in event_families.FAMILIES if family in named]


def _position(given: Any, place: ErrorPlace) -> int | str:
    if isinstance(given, str) and given.isascii() and given.isdecimal() and len(given) < 19:
        given = int(given)
    if given in START_WORDS:
        return str(given)
    if type(given) is not int or given < 0:
        raise place.error("value", f"a position of the log is needed, or {' or '.join(START_WORDS)}")
    return given


def _filters(given: Any, offer: SubscriptionSupport) -> list[Json]:
    if isinstance(given, list) and len(given) > offer.filters:
        raise QuotaExceeded(
            error_detail=f"a subscription has at most {offer.filters} filters",
            extensions={"code": "quotaexceeded", "pointer": "/filters"},
        )
    _compiled(given, "/filters", "/filters")
    return list(given)


def _compiled(given: Any, shown: str, pointer: str) -> None:
    """Raises: InvalidSubscription. shown: replaces `pointer` in errors if the client's document has another form."""
    try:
        filters.compile_filters(given, pointer.removesuffix("/0") if shown != pointer else pointer)
    except filters.FilterError as error:
        place = shown + error.pointer.removeprefix(pointer) if error.pointer.startswith(pointer) else shown
        raise invalid_subscription("filter", place, error.reason) from None


def _check_channel(sink: SinkAddress, options: Mapping[str, Json], secret: bool, offer: SubscriptionSupport) -> None:
    """Checks TLS (SUB-306, SUB-905). secret: whether a secret is sent with the events. Raises: InvalidSubscription."""
    if not sink.tls and not offer.plaintext:
        raise invalid_subscription("plaintext", "/sink", "this server sends events over TLS only")
    if not sink.tls and secret and not sink.is_loopback:
        raise invalid_subscription("plaintext", "/sink", "credentials are sent over TLS only")
    dead = options["deadletter"].get("uri")
    if dead is not None and not offer.plaintext and not dead.lower().startswith("https:"):
        raise invalid_subscription("plaintext", "/protocolsettings/deadletter/uri", "an https URL is needed")


def _take_secrets(found: dict[str, Json]) -> dict[str, str]:
    """Removes the secret values from a document and returns them; the document must consist of new objects."""
    secrets: dict[str, str] = {}
    options, credential = found["protocolsettings"], found.get("sinkcredential", {})
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
    for owner, member, name in _uris(found):
        if member in owner and "?" in owner[member]:
            owner[member], _, secrets[name + QUERY_SUFFIX] = owner[member].partition("?")
    return secrets


def _uris(found: dict[str, Json]) -> tuple[tuple[dict[str, Json], str, str], ...]:
    """Each object with a URI, the member that holds it, and its name."""
    credential, dead = found.get("sinkcredential", {}), found["protocolsettings"]["deadletter"]
    return (
        (found, "sink", "sink"),
        (credential, credentials.ENDPOINT, credentials.PREFIX + credentials.ENDPOINT),
        (dead, "uri", "protocolsettings.deadletter.uri"),
    )


def _needed(credential: Mapping[str, Json] | None, secrets: Mapping[str, str]) -> frozenset[str]:
    if credential is None:
        return frozenset()
    names = (credentials.PREFIX + name for name in credentials.missing_secrets(credential))
    return frozenset(name for name in names if name not in secrets)


def _dropped(options: Any) -> frozenset[str]:
    """The secrets that are given as null. Responses do not show secrets, so an omitted secret stays."""
    headers = options.get("headers") if isinstance(options, dict) else None
    found = {HEADERS_PREFIX + name.lower() for name, value in headers.items() if value is None} if headers else set()
    if isinstance(options, dict) and "signingkey" in options and options["signingkey"] is None:
        found.add(SIGNINGKEY)
    return frozenset(found)
