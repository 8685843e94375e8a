"""What the endpoint, message and schema specifications ask for beyond what a model can say (levels L2 and L3).

A rule is a validator: from one entity, and a look at the others, to findings. The same ones judge what a command is
about to record and what the read model shows. Validators never raise, whatever an entity holds.
Spec: endpoint, message and schema 1.0-rc4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from domain.findings import (
    addresses,
    agreement,
    credentials,
    endpoints,
    envelopes,
    kafka,
    messages,
    options,
    payloads,
    placeholders,
    topics,
)
from domain.findings.finding import L2, L3, Chains, Check, Finding, Lookup, Subject, Validator
from domain.findings.payloads import inline_schema, references
from domain.findings.types import ENDPOINTS, MESSAGEGROUPS, MESSAGES, judged

__all__ = [
    "L2",
    "L3",
    "MESSAGES",
    "VALIDATORS",
    "Chains",
    "Check",
    "Finding",
    "Lookup",
    "Subject",
    "changed",
    "findings",
]
__all__ += ["inline_schema", "judged", "membership", "references"]

#: The rules for each kind of entity. Schemas and their groups have none that their model does not say itself.
VALIDATORS: Final[dict[str, tuple[Validator, ...]]] = {
    ENDPOINTS: (
        endpoints.roles_fit,
        endpoints.names_are_named,
        envelopes.options_fit_the_mode,
        addresses.addresses_fit,
        credentials.authorization_is_described,
        credentials.nothing_is_secret,
        topics.places_are_concrete,
        topics.groups_share_filters,
        topics.will_can_be_sent,
        options.options_are_in_range,
        options.http_options_are_tokens,
        kafka.consumers_have_groups,
        options.options_are_for_the_role,
        placeholders.placeholders_are_plain,
        endpoints.groups_are_there,
        endpoints.messages_come_once,
    ),
    MESSAGEGROUPS: (envelopes.envelope_is_named,),
    MESSAGES: (
        envelopes.envelope_is_named,
        agreement.message_agrees,
        envelopes.what_is_named_is_described,
        messages.bases_end,
        envelopes.messageid_is_the_type,
        envelopes.metadata_is_cloudevents,
        envelopes.options_fit_the_mode,
        envelopes.properties_parse,
        envelopes.content_is_said_once,
        messages.mqtt_options_are_in_range,
        messages.http_options_are_tokens,
        messages.amqp_names_are_symbols,
        kafka.keys_are_one,
        kafka.headers_are_called_by_their_keys,
        placeholders.placeholders_are_plain,
        payloads.schema_has_a_format,
        payloads.xid_is_of_a_schema,
        payloads.uri_leads_to_a_schema,
        payloads.inline_schema_is_valid,
        payloads.content_type_is_one,
    ),
}
#: The rules for a message as the member of a Group: all there are for one that stands for another.
_OF_MEMBERS: Final[tuple[Validator, ...]] = (agreement.message_agrees, messages.bases_end)


def findings(kind: str, subject: Subject) -> Iterator[Finding]:
    """What the rules for a kind find in an entity.

    A message that stands for another one is judged as a member of its Group only: the other has the rest.
    """
    pointer = kind == MESSAGES and "xref" in (subject.attributes.get("meta") or {})
    for validator in _OF_MEMBERS if pointer else VALIDATORS[kind]:
        yield from validator(subject)


def membership(subject: Subject) -> Iterator[Finding]:
    """Where a message and its Group do not agree."""
    return agreement.message_agrees(subject)


def changed(before: Mapping[str, Any], subject: Subject) -> Iterator[Finding]:
    """What the change of a message says that neither state of it does. before: the attributes so far."""
    return messages.type_stays(before, subject)
