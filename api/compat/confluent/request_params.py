"""Reads requests of Confluent's clients: query parameters and bodies (CSR-105, CSR-108, CSR-109, CSR-111)."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from annals.api.compat.confluent.responses import MEDIA_TYPES, status_error
from annals.api.http.query_params import bounded_number
from annals.api.http.request import Request
from annals.domain.confluent.commands import LATEST_OR_NEXT, SchemaRequest
from annals.domain.confluent.errors import SchemaRegistryError, invalid_schema, invalid_version
from annals.domain.confluent.facts import MAX_NUMBER
from annals.domain.confluent.metadata_rules import check_rule_set, check_shapes, without_empty_members
from annals.domain.confluent.schema_types import AVRO, SCHEMA_TYPES
from annals.domain.confluent.schema_versions import MAX_ID, NamedReference
from annals.domain.values.json_text import InvalidJson, loads

_OTHER_TYPES: Final = ("application/octet-stream", "")
#: Charsets of bodies, as Python names them. Other codecs may take quadratic time, or make texts that are none.
_CHARSETS: Final = frozenset(
    ("ascii", "utf-8", "iso8859-1", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")
)
_LATEST: Final = ("latest", "-1")
_MAX_INTEGER: Final = 10**10 - 1
#: The version `latest`.
LATEST_VERSION: Final = 0


class QueryParams:
    """The query parameters of a request; unknown ones are ignored."""

    def __init__(self, request: Request) -> None:
        self._values: dict[str, list[str]] = {}
        for parameter in filter(None, request.query.decode("latin-1").split("&")):
            name, _, value = parameter.partition("=")
            self._values.setdefault(_decode(name), []).append(_decode(value))

    def text(self, name: str, default: str = "") -> str:
        """The first value."""
        return self._values[name][0] if name in self._values else default

    def texts(self, name: str) -> Sequence[str]:
        """All values, in order."""
        return self._values.get(name, ())

    def has(self, name: str) -> bool:
        return name in self._values

    def flag(self, name: str) -> bool:
        return self.text(name).lower() == "true"

    def integer(self, name: str, default: int) -> int:
        """Raises: SchemaRegistryError, 404, for a text that is no integer of at most ten digits."""
        number = bounded_number(self.text(name, str(default)), -_MAX_INTEGER, _MAX_INTEGER)
        if number is None:
            raise status_error(404)
        return number

    def page(self, members: Sequence[Any]) -> list[Any]:
        """The part of a list that `offset` and `limit` name."""
        start, limit = max(0, self.integer("offset", 0)), self.integer("limit", -1)
        return list(members[start : start + limit] if limit > 0 else members[start:])


def parse_object(request: Request, content: bytes) -> dict[str, Any]:
    """The JSON object of a body. Raises: SchemaRegistryError."""
    content_type, *parameters = (request.header(b"content-type") or "").split(";")
    if content_type.strip().lower() not in (*MEDIA_TYPES, *_OTHER_TYPES):
        raise status_error(415)
    if not content:
        raise SchemaRegistryError(422, "A body with a JSON object is needed")
    try:
        value = loads(_recode(content, parameters))
    except InvalidJson as error:
        raise SchemaRegistryError(400, f"The body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise SchemaRegistryError(422, "The body has to be a JSON object")
    return value


def schema_request(body: Mapping[str, Any]) -> SchemaRequest:
    """The schema in a body. Raises: SchemaRegistryError for members of wrong types, and an unknown type."""
    type = _member(body, "schemaType", str) or AVRO
    if type not in SCHEMA_TYPES:
        raise invalid_schema(f"Invalid schema type {type}")
    references = _member(body, "references", list) or []
    metadata = without_empty_members(_member(body, "metadata", dict) or {}) or None
    rule_set = without_empty_members(_member(body, "ruleSet", dict) or {}) or None
    check_shapes(metadata, rule_set)
    return SchemaRequest(
        text=_member(body, "schema", str) or "",
        type=type,
        references=tuple(map(_reference, references)),
        metadata=metadata,
        rule_set=rule_set,
        id=_id(body),
        version=_version(body),
    )


def check_config(body: Mapping[str, Any]) -> None:
    """Raises: SchemaRegistryError for metadata and rules of a config that no schema can have."""
    for prefix in ("default", "override"):
        rule_set = _member(body, f"{prefix}RuleSet", dict)
        check_shapes(_member(body, f"{prefix}Metadata", dict), rule_set)
        check_rule_set(rule_set)


def parse_version(text: str) -> int:
    """A version of a path; LATEST_VERSION for the latest. Raises: SchemaRegistryError."""
    stripped = text.strip()
    if stripped.lower() in _LATEST:
        return LATEST_VERSION
    is_number = stripped.isascii() and stripped.isdecimal() and len(stripped) <= 10
    if not is_number or not 1 <= int(stripped) <= MAX_NUMBER:
        raise invalid_version(text)
    return int(stripped)


def parse_id(text: str) -> int:
    """An id of a path. Raises: SchemaRegistryError, 404."""
    if not (text.isascii() and text.removeprefix("-").isdecimal()) or len(text) > 11 or abs(int(text)) > MAX_ID:
        raise status_error(404)
    return int(text)


def _id(body: Mapping[str, Any]) -> int | None:
    id = _member(body, "id", int)
    if id is not None and id > MAX_ID:
        raise SchemaRegistryError(422, f'The member "id" is more than {MAX_ID}')
    return id if id is not None and id >= 0 else None


def _version(body: Mapping[str, Any]) -> int | None:
    version = _member(body, "version", int)
    if version is not None and version > MAX_NUMBER:
        raise invalid_version(str(version))
    return max(version, LATEST_OR_NEXT) if version else None


def _reference(value: Any) -> NamedReference:
    if not isinstance(value, dict) or not all(isinstance(value.get(name), str) for name in ("name", "subject")):
        raise invalid_schema("A reference needs a name, a subject and a version")
    version = value.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version > MAX_NUMBER:
        raise invalid_schema(f'The reference "{value["name"]}" needs a version')
    return NamedReference(value["name"], value["subject"], version)


def _member(body: Mapping[str, Any], name: str, type: type[Any]) -> Any:
    value = body.get(name)
    is_wrong = value is not None and (not isinstance(value, type) or (type is int and isinstance(value, bool)))
    if is_wrong:
        raise SchemaRegistryError(422, f'The member "{name}" has a wrong type')
    return value


def _recode(content: bytes, parameters: Sequence[str]) -> bytes:
    """The content in UTF-8."""
    charset = next((part.partition("=")[2] for part in parameters if part.strip().lower().startswith("charset=")), "")
    if not charset:
        return content
    try:
        name = codecs.lookup(charset.strip().strip('"')).name
        if name in _CHARSETS:
            return content.decode(name).encode()
    except UnicodeError:
        raise SchemaRegistryError(400, f"The body is no text in {charset}") from None
    except (LookupError, ValueError):
        pass
    raise SchemaRegistryError(400, f"The charset {charset} is not supported; send UTF-8")


def _decode(text: str) -> str:
    return unquote_to_bytes(text.replace("+", "%2B").encode("latin-1")).decode("utf-8", "replace")
