"""The identity of a content: its key, which decides whether two schemas are equal, and its guid (CSR-407, CSR-413).

The guid is that of Confluent's registry, an MD5 hash, so it does not decide about equality: two texts with one MD5
hash are easy to make.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import md5, sha256
from typing import Any, Final, NamedTuple

from annals.domain.values.json_text import dumps

_PRESENT: Final = b"\x01"
_RULE_LISTS: Final = ("migrationRules", "domainRules", "encodingRules")
_RULE_TEXTS: Final = ("name", "doc", "kind", "mode", "type")
_RULE_RESULTS: Final = ("expr", "onSuccess", "onFailure")


class ContentIdentity(NamedTuple):
    """key: SHA-256 in hex. guid: a UUID as text."""

    key: str
    guid: str


def content_identity(type: str, canonical_text: str, extras: Mapping[str, Any]) -> ContentIdentity:
    """The identity of a content. extras: `references`, `metadata` and `ruleSet`, those that it has."""
    parts = [type, canonical_text, *(comparable(extras.get(name)) for name in ("references", "metadata", "ruleSet"))]
    guid_hash = md5(canonical_text.encode("utf-8", "surrogatepass"), usedforsecurity=False)
    for part in _guid_parts(extras):
        guid_hash.update(part)
    return ContentIdentity(sha256(dumps(parts)).hexdigest(), guid_text(guid_hash.hexdigest()))


#: The form of a guid (CSR-413).
GUID: Final = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def guid_text(digits: str) -> str:
    """A guid with its dashes. digits: 32 of them, in hex."""
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _guid_parts(extras: Mapping[str, Any]) -> Iterable[bytes]:
    for reference in extras.get("references", ()):
        yield f"{reference['name']}{reference['subject']}".encode()
        yield int(reference["version"]).to_bytes(4, "big", signed=True)
    metadata, rule_set = extras.get("metadata"), extras.get("ruleSet")
    if metadata is not None:
        yield _PRESENT
        for name, values in sorted((metadata.get("tags") or {}).items()):
            yield "".join((name, *values)).encode()
        for name, value in sorted((metadata.get("properties") or {}).items()):
            yield f"{name}{value}".encode()
        yield "".join(sorted(metadata.get("sensitive") or ())).encode()
    if rule_set is not None:
        yield _PRESENT
        for rule in (rule for name in _RULE_LISTS for rule in rule_set.get(name) or ()):
            yield from _rule_parts(rule)
        yield str(rule_set.get("enableAt") or "").encode()


def _rule_parts(rule: Mapping[str, Any]) -> Iterable[bytes]:
    yield "".join(str(rule.get(name) or "") for name in _RULE_TEXTS).encode()
    yield "".join(sorted(map(str, rule.get("tags") or ()))).encode()
    yield "".join(f"{name}{value}" for name, value in sorted((rule.get("params") or {}).items())).encode()
    yield "".join(str(rule.get(name) or "") for name in _RULE_RESULTS).encode()
    if rule.get("disabled"):
        yield _PRESENT


def comparable(value: Any) -> Any:
    """Metadata or rules for comparing: with the members of objects sorted, because their order has no meaning there.

    A rule that is not disabled says so or not; clients send what they have read with this member.
    """
    if isinstance(value, Mapping):
        return {name: comparable(value[name]) for name in sorted(value) if (name, value[name]) != ("disabled", False)}
    return [comparable(item) for item in value] if isinstance(value, list) else value
