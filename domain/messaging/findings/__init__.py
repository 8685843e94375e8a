"""The rules of the endpoint, message and schema specifications that a model cannot express (levels L2 and L3).

A rule is a validator: a function from one entity, and a lookup of the others, to findings. The same rules check what a
command is about to record and the read model. Validators never raise, whatever an entity contains.
Spec: endpoint, message and schema 1.0-rc4. Begin with `finding.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from annals.domain.messaging.findings import (
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
from annals.domain.messaging.findings.finding import (
    L2,
    L3,
    BaseChains,
    EntityLookup,
    Finding,
    SchemaCheck,
    ValidatedEntity,
    Validator,
)
from annals.domain.messaging.findings.payloads import inline_schema, referenced_xids
from annals.domain.messaging.findings.types_with_rules import ENDPOINTS, MESSAGEGROUPS, MESSAGES, kinds_by_type

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

#: The rules for each kind of entity. For schemas and their groups the model expresses all rules itself.
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
        options.http_options_are_tokens,
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
#: The rules for a message as the member of a Group; for a message with an xref these are all rules.
_MEMBERSHIP_VALIDATORS: Final[tuple[Validator, ...]] = (agreement.message_matches_group, messages.base_chain_ends)


def entity_findings(kind: str, subject: ValidatedEntity) -> Iterator[Finding]:
    """The findings of an entity by the rules for its kind.

    A message with an xref is checked only as a member of its Group: the target is checked for the rest.
    """
    is_pointer = kind == MESSAGES and "xref" in (subject.attributes.get("meta") or {})
    for validator in _MEMBERSHIP_VALIDATORS if is_pointer else VALIDATORS[kind]:
        yield from validator(subject)


def membership_findings(subject: ValidatedEntity) -> Iterator[Finding]:
    """The disagreements between a message and its Group."""
    return agreement.message_matches_group(subject)


def change_findings(previous: Mapping[str, Any], subject: ValidatedEntity) -> Iterator[Finding]:
    """Findings about the change of a message, which no single state shows."""
    return messages.type_is_unchanged(previous, subject)
