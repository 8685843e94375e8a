"""What generated histories write: Groups, Resources and their documents, each body a function of chance alone."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final, NamedTuple

Body = dict[str, Any]

_VOCABULARY: Final = """
    account address amount basket batch carrier city code country currency customer date discount duration email
    event height invoice item language latitude length level line longitude measure method name note number order
    origin owner parcel partner payment period phone place price priority product quantity rate reason reference
    region result route score sender service session shipment sku source state status stock street supplier tag
    target tax temperature time token total track unit user value vehicle version voltage volume warehouse weight
    width zone
"""
_WORDS: Final = _VOCABULARY.split()
_TYPES: Final = ("string", "string", "string", "integer", "number", "boolean")
#: Documents that several Versions have, byte for byte, and how often one of them is taken.
_SHARED: Final = 300
_SHARE: Final = 0.15


class Kind(NamedTuple):
    """A type of Group. resources: the plural of its Resources. group, resource: bodies of new ones."""

    resources: str
    group: Callable[[Random], Body]
    resource: Callable[[Random], Body]


def words(chance: Random, count: int) -> str:
    """So many words, one behind the other."""
    return " ".join(chance.choices(_WORDS, k=count))


def labels(chance: Random) -> Body:
    """Labels as teams give them."""
    return {"team": f"team{chance.randrange(40)}", "stage": chance.choice(("dev", "test", "prod", "prod"))}


def deprecated(chance: Random) -> Body:
    """The attribute that announces a removal."""
    year, month = 2027 + chance.randrange(5), 1 + chance.randrange(12)
    deprecation = {"effective": f"{year}-{month:02}-01T00:00:00Z"}
    if chance.random() < 0.5:
        deprecation["removal"] = f"{year + 1}-{month:02}-01T00:00:00Z"
    return deprecation


def schema(chance: Random) -> Body:
    """A schema with its document, of some hundred bytes."""
    source = Random(chance.randrange(_SHARED)) if chance.random() < _SHARE else chance
    return {**_told(chance), "format": "JsonSchema/draft-07", "schema": _document(source)}


def _document(chance: Random) -> Body:
    fields = chance.choices(_WORDS, k=2 + int(24 ** chance.random()))
    properties = {
        name: {"type": chance.choice(_TYPES), "description": words(chance, 3)} for name in dict.fromkeys(fields)
    }
    return {"$id": f"urn:example:{chance.getrandbits(32):08x}", "type": "object", "properties": properties}


def _message(chance: Random) -> Body:
    name = words(chance, 2).replace(" ", ".")
    return {
        **_told(chance),
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {"type": {"value": f"com.example.{name}"}, "source": {"value": "/sites/{site}"}},
        "dataschemaformat": "JsonSchema/draft-07",
        "dataschemauri": f"https://example.com/schemas/{name}",
    }


def _told(chance: Random) -> Body:
    return {
        "name": words(chance, 2).title(),
        "description": words(chance, 4 + int(12 ** chance.random())),
        "labels": labels(chance),
    }


def _endpoint(chance: Random) -> Body:
    options = {"endpoints": [{"uri": f"https://{words(chance, 1)}.example.com/in"}]}
    return {**_told(chance), "usage": ["consumer"], "protocol": "HTTP", "protocoloptions": options}


KINDS: Final[dict[str, Kind]] = {
    "schemagroups": Kind("schemas", _told, schema),
    "messagegroups": Kind("messages", _told, _message),
    "endpoints": Kind("messages", _endpoint, _message),
}
#: The number of Groups of each kind.
SHARES: Final = (7, 2, 1)
