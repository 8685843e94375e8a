"""What the endpoint, message and schema specifications ask for beyond what a model can say (levels L2 and L3).

A rule is a validator: from one entity, and a look at the others, to findings. The same ones judge what a command is
about to record and what the read model shows. Validators never raise, whatever an entity holds.
Spec: endpoint, message and schema 1.0-rc4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from domain.messaging.findings import (
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
from domain.messaging.findings.finding import (
    L2,
    L3,
    BaseChains,
    EntityLookup,
    Finding,
    SchemaCheck,
    ValidatedEntity,
    Validator,
)
from domain.messaging.findings.payloads import inline_schema, referenced_xids
from domain.messaging.findings.types_with_rules import ENDPOINTS, MESSAGEGROUPS, MESSAGES, kinds_by_type

__all__ = [
    "L2",
    "L3",
    "MESSAGES",
    "VALIDATORS",
    "BaseChains",
    "EntityLookup",
    "Finding",
    "SchemaCheck",
    "ValidatedEntity",
    "change_findings",
    "entity_findings",
]
__all__ += ["inline_schema", "kinds_by_type", "membership_findings", "referenced_xids"]

#: The rules for each kind of entity. Schemas and their groups have none that their model does not say itself.
VALIDATORS: Final[dict[str, tuple[Validator, ...]]] = {
    ENDPOINTS: (
        endpoints.roles_fit,
        endpoints.names_are_well_formed,
        envelopes.options_fit_the_mode,
        addresses.addresses_fit,
        credentials.authorization_is_described,
        credentials.options_have_no_secrets,
        topics.destinations_are_concrete,
        topics.groups_share_filters,
        topics.last_will_is_sendable,
        options.options_are_in_range,
        options.http_options_are_tokens,
        kafka.consumers_have_groups,
        options.options_fit_the_role,
        placeholders.placeholders_are_level_1,
        endpoints.messagegroups_exist,
        endpoints.messageids_are_unique,
    ),
    MESSAGEGROUPS: (envelopes.envelope_and_protocol_names_are_well_formed,),
    MESSAGES: (
        envelopes.envelope_and_protocol_names_are_well_formed,
        agreement.message_matches_group,
        envelopes.metadata_and_options_are_present,
        messages.base_chain_ends,
        envelopes.messageid_is_the_type,
        envelopes.metadata_is_cloudevents,
        envelopes.options_fit_the_mode,
        envelopes.properties_parse,
        envelopes.data_descriptions_agree,
        messages.mqtt_options_are_in_range,
        messages.http_options_are_tokens,
        messages.amqp_names_are_symbols,
        kafka.key_is_given_once,
        kafka.header_names_match_keys,
        placeholders.placeholders_are_level_1,
        payloads.schema_has_a_format,
        payloads.xid_is_of_a_schema,
        payloads.uri_leads_to_a_schema,
        payloads.inline_schema_is_valid,
        payloads.datacontenttype_is_media_type,
    ),
}
#: The rules for a message as the member of a Group: all there are for one that stands for another.
_OF_MEMBERS: Final[tuple[Validator, ...]] = (agreement.message_matches_group, messages.base_chain_ends)


def entity_findings(kind: str, subject: ValidatedEntity) -> Iterator[Finding]:
    """What the rules for a kind find in an entity.

    A message that stands for another one is judged as a member of its Group only: the other has the rest.
    """
    pointer = kind == MESSAGES and "xref" in (subject.attributes.get("meta") or {})
    for validator in _OF_MEMBERS if pointer else VALIDATORS[kind]:
        yield from validator(subject)


def membership_findings(subject: ValidatedEntity) -> Iterator[Finding]:
    """Where a message and its Group do not agree."""
    return agreement.message_matches_group(subject)


def change_findings(before: Mapping[str, Any], subject: ValidatedEntity) -> Iterator[Finding]:
    """What the change of a message says that neither state of it does. before: the attributes so far."""
    return messages.type_is_unchanged(before, subject)
