"""Messages agree with their groups: one protocol, one envelope.

Messages with an xref are ordinary members: the content that they show has to agree.
Spec: endpoint 1.0-rc4, "protocol", "envelope"; message 1.0-rc4, "Message Group". Rules EP-11, EP-13, MS-03.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from domain.messaging.findings import names
from domain.messaging.findings.finding import Finding, ValidatedEntity
from domain.messaging.findings.unchecked_values import as_text
from domain.values import xid as xids

#: The attributes of a Group with which its messages have to agree.
BINDING: Final = ("envelope", "protocol")


def message_matches_group(subject: ValidatedEntity) -> Iterator[Finding]:
    """Findings of a message whose attributes differ from those of its Group."""
    parts = xids.segments(subject.xid)
    group = subject.lookup.get(xids.join(*parts[:2]))
    judge = _GROUPS.get(parts[0])
    if group is not None and judge is not None:
        yield from judge(subject, group)


def _in_endpoint(subject: ValidatedEntity, group: Mapping[str, Any]) -> Iterator[Finding]:
    outer, inner = as_text(group.get("protocol")), subject.text("protocol")
    if outer and inner and not names.same_protocol(outer, inner):
        yield subject.must("EP-11", "the endpoint has another protocol", "protocol")
    outer, inner = as_text(group.get("envelope")), subject.text("envelope")
    if outer and inner and not names.envelope_admits(outer, inner):
        yield subject.must("EP-13", "the endpoint has another or a more precise envelope", "envelope")


def _in_messagegroup(subject: ValidatedEntity, group: Mapping[str, Any]) -> Iterator[Finding]:
    outer, inner = as_text(group.get("envelope")), subject.text("envelope")
    if outer and inner is None:
        yield subject.must("MS-03", "it is missing: the message group has one", "envelope")
    elif outer and inner is not None and outer.casefold() != inner.casefold():
        yield subject.must("MS-03", "the message group has another envelope", "envelope")
    outer, inner = as_text(group.get("protocol")), subject.text("protocol")
    if outer and inner and not names.same_protocol(outer, inner):
        yield subject.must("MS-03", "the message group has another protocol", "protocol")


_GROUPS: Final[dict[str, Callable[[ValidatedEntity, Mapping[str, Any]], Iterator[Finding]]]] = {
    "endpoints": _in_endpoint,
    "messagegroups": _in_messagegroup,
}
