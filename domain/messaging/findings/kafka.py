"""Kafka: consumer groups, and the keys and headers of messages.

Spec: endpoint 1.0-rc4, "KAFKA options"; message 1.0-rc4, "Kafka". Rules EP-35, EP-36, MS-41, MS-45.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Final

from annals.domain.messaging.findings import names
from annals.domain.messaging.findings.endpoints import CONSUMER, PRODUCER, SUBSCRIBER
from annals.domain.messaging.findings.finding import Finding, ValidatedEntity
from annals.domain.messaging.findings.unchecked_values import as_mapping, as_text, as_texts

#: Options that only members of a consumer group may have.
_GROUP_OPTIONS: Final = ("autooffsetreset", "enableautocommit")


def consumers_have_groups(subject: ValidatedEntity) -> Iterator[Finding]:
    """EP-35, EP-36: only a consumer names a group, and it has to. An endpoint without options is abstract."""
    if subject.protocol != names.KAFKA or "protocoloptions" not in subject.attributes:
        return
    options, roles = subject.options, as_texts(subject.attributes.get("usage"))
    if CONSUMER in roles and not options.get("consumergroup"):
        yield subject.must(
            "EP-35", "a consumer has to name the group that it joins", "protocoloptions", "consumergroup"
        )
    if SUBSCRIBER in roles and CONSUMER not in roles and "consumergroup" in options:
        yield subject.must(
            "EP-35", "a subscriber creates a group and does not join one", "protocoloptions", "consumergroup"
        )
    if CONSUMER not in roles and {PRODUCER, SUBSCRIBER} & set(roles):
        for name in _GROUP_OPTIONS:
            if name in options:
                yield subject.must("EP-36", "only a consumer has offsets", "protocoloptions", name)


def key_is_given_once(subject: ValidatedEntity) -> Iterator[Finding]:
    """MS-41: a key as text or as base64."""
    options = subject.options
    if subject.protocol != names.KAFKA or "key_base64" not in options:
        return
    if "key" in options:
        yield subject.must("MS-41", "it cannot be combined with key", "protocoloptions", "key_base64")
    if not is_base64(as_text(options["key_base64"]) or ""):
        yield subject.must("MS-41", "it is not base64", "protocoloptions", "key_base64")


def header_names_match_keys(subject: ValidatedEntity) -> Iterator[Finding]:
    """MS-45. Keys of maps are in lower case, so they cannot show the case of a name."""
    if subject.protocol != names.KAFKA:
        return
    for key, header in as_mapping(subject.options.get("headers")).items():
        name = as_text(as_mapping(header).get("name"))
        if name is not None and name.casefold() != key.casefold():
            yield subject.should("MS-45", "the name differs from its key", "protocoloptions", "headers", key, "name")


def is_base64(value: str) -> bool:
    """Whether a text is base64, with its padding."""
    try:
        base64.b64decode(value.encode("ascii"), validate=True)
    except (ValueError, binascii.Error):
        return False
    return True
