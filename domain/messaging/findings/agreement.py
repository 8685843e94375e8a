"""Messages agree with their groups: one protocol, one envelope.

Messages with an xref are ordinary members: the content that they show has to agree.
Spec: endpoint 1.0-rc4, "protocol", "envelope"; message 1.0-rc4, "Message Group". Rules EP-11, EP-13, MS-03.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from annals.domain.messaging.findings import names
from annals.domain.messaging.findings.finding import Finding, ValidatedEntity
from annals.domain.messaging.findings.unchecked_values import as_text
from annals.domain.values import xid as xids

#: The attributes of a Group with which its messages have to agree.
BINDING: Final = ("envelope", "protocol")


def message_matches_group(subject: ValidatedEntity) -> Iterator[Finding]:
    """Findings of a message whose attributes differ from those of its Group."""
    segments = xids.segments(subject.xid)
    group = subject.lookup.get(xids.join(*segments[:2]))
    check_message = _CHECKS_BY_GROUP_TYPE.get(segments[0])
    if group is not None and check_message is not None:
        yield from check_message(subject, group)


def _check_in_endpoint(subject: ValidatedEntity, group: Mapping[str, Any]) -> Iterator[Finding]:
    group_value, message_value = as_text(group.get("protocol")), subject.text("protocol")
    if group_value and message_value and not names.same_protocol(group_value, message_value):
        yield subject.must("EP-11", "the endpoint has another protocol", "protocol")
    group_value, message_value = as_text(group.get("envelope")), subject.text("envelope")
    if group_value and message_value and not names.is_envelope_allowed(group_value, message_value):
        yield subject.must("EP-13", "the endpoint has another or a more precise envelope", "envelope")


def _check_in_messagegroup(subject: ValidatedEntity, group: Mapping[str, Any]) -> Iterator[Finding]:
    group_value, message_value = as_text(group.get("envelope")), subject.text("envelope")
    if group_value and message_value is None:
        yield subject.must("MS-03", "it is missing: the message group has one", "envelope")
    elif group_value and message_value is not None and group_value.casefold() != message_value.casefold():
        yield subject.must("MS-03", "the message group has another envelope", "envelope")
    group_value, message_value = as_text(group.get("protocol")), subject.text("protocol")
    if group_value and message_value and not names.same_protocol(group_value, message_value):
        yield subject.must("MS-03", "the message group has another protocol", "protocol")


_CHECKS_BY_GROUP_TYPE: Final[dict[str, Callable[[ValidatedEntity, Mapping[str, Any]], Iterator[Finding]]]] = {
    "endpoints": _check_in_endpoint,
    "messagegroups": _check_in_messagegroup,
}
