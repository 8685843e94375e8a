"""Endpoints: their roles, their names, and the message groups that they refer to.

Spec: endpoint 1.0-rc4, "Endpoint" attributes. Rules EP-03 to EP-09, EP-12, EP-13, EP-32, EP-42, EP-43.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from annals.domain.messaging.findings import names
from annals.domain.messaging.findings.finding import Finding, ValidatedEntity, is_xid
from annals.domain.messaging.findings.unchecked_values import as_sequence, as_texts
from annals.domain.values import xid as xids

PRODUCER: Final = "producer"
CONSUMER: Final = "consumer"
SUBSCRIBER: Final = "subscriber"
_ALLOWED_PAIR: Final = {SUBSCRIBER, CONSUMER}
#: Protocols in which one connection both subscribes and receives.
_PAIRING_PROTOCOLS: Final = (*names.MQTT, names.AMQP, names.NATS)


def roles_fit(subject: ValidatedEntity) -> Iterator[Finding]:
    """EP-03 to EP-07, EP-32: one role, or the pair that some protocols allow."""
    if "usage" in subject.attributes and not isinstance(subject.attributes["usage"], list):
        return
    roles = as_texts(subject.attributes.get("usage"))
    if not roles:
        yield subject.must("EP-03", "an endpoint has to name the roles in which clients use it", "usage")
    elif len(set(roles)) < len(roles):
        yield subject.must("EP-05", "a role appears twice", "usage")
    elif PRODUCER in roles and len(roles) > 1:
        yield subject.must("EP-05", "producer cannot be combined with another role", "usage")
        yield subject.should("EP-07", "use two endpoints that share a channel instead", "usage")
    elif len(roles) > 1 and set(roles) != _ALLOWED_PAIR:
        yield subject.must("EP-04", "only subscriber and consumer can be combined", "usage")
    elif len(roles) > 1:
        yield from _pair_is_allowed(subject)


def _pair_is_allowed(subject: ValidatedEntity) -> Iterator[Finding]:
    protocol = subject.protocol
    if protocol is None:
        yield subject.should("EP-06", "not every protocol allows an endpoint to be subscriber and consumer", "usage")
    elif protocol not in _PAIRING_PROTOCOLS:
        yield subject.must("EP-06", f"with {protocol} an endpoint has one role", "usage")


def names_are_well_formed(subject: ValidatedEntity) -> Iterator[Finding]:
    """EP-09, EP-12, EP-13: names are not empty, and the protocol's name includes its version."""
    channel, envelope, protocol = (subject.text(name) for name in ("channel", "envelope", "protocol"))
    if channel == "":
        yield subject.must("EP-09", "it is empty", "channel")
    if envelope is not None and not names.is_name(envelope):
        yield subject.must("EP-13", "it is not <NAME> or <NAME>/<VERSION>", "envelope")
    if protocol == "":
        yield subject.must("EP-12", "it is empty", "protocol")
    elif protocol and names.canonical_protocol(protocol) is None and not names.is_versioned(protocol):
        yield subject.should("EP-12", "a protocol should be named <NAME>/<VERSION>", "protocol")


def messagegroups_exist(subject: ValidatedEntity) -> Iterator[Finding]:
    """EP-42: references lead to message groups of this registry."""
    for index, reference in enumerate(as_sequence(subject.attributes.get("messagegroups"))):
        if isinstance(reference, str) and reference.startswith("#"):
            text = "use the xid of a message group instead of a fragment"
            yield subject.should("EP-42", text, "messagegroups", index)
        elif isinstance(reference, str) and is_xid(reference) and subject.find(reference) is None:
            yield subject.should("EP-42", "the message group does not exist", "messagegroups", index)


def messageids_are_unique(subject: ValidatedEntity) -> Iterator[Finding]:
    """EP-43: no messageid appears twice in the endpoint itself and the groups that it refers to.

    Cost: it reads all of their messages, if several of them have messages.
    """
    references = enumerate(as_sequence(subject.attributes.get("messagegroups")))
    groups = {index: group_xid for index, group_xid in references if isinstance(group_xid, str) and is_xid(group_xid)}
    groups = {index: group_xid for index, group_xid in groups.items() if len(xids.segments(group_xid)) == 2}
    own_messages = subject.lookup.members(f"{subject.xid}/messages") if groups else ()
    if len(groups) + bool(own_messages) < 2:
        return
    known_ids = {xids.entity_id(xid).lower() for xid in own_messages}
    for index, group in groups.items():
        group_ids = {xids.entity_id(xid).lower() for xid in subject.lookup.members(f"{group}/messages")}
        for id in sorted(group_ids & known_ids):
            yield subject.should("EP-43", f'it has another message with the messageid "{id}"', "messagegroups", index)
        known_ids |= group_ids
