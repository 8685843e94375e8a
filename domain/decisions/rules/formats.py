"""Checks of documents against their `format`, and of Versions against `meta.compatibility`.

All document checks are requested in one call (`World.check_results`). Their results then decide about each Version.
Spec: core 1.0-rc4, "formatvalidated Attribute", "compatibilityvalidated Attribute"; model 1.0-rc4, "validateformat",
"validatecompatibility", "strictvalidation". Rules ENT-110 to 116, SC-10 to 15, SC-30 to 35.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from annals.domain.confluent.facts import ACCEPTED
from annals.domain.decisions import capabilities
from annals.domain.decisions.capabilities import EnabledFormats
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.drafts import ResourceDraft, VersionDraft
from annals.domain.decisions.checks.document_checks import CheckResults
from annals.domain.decisions.confluent.schema_ids import content_checks
from annals.domain.decisions.rules.compared_versions import (
    affects_descendants,
    compared_drafts,
    compares_all_ancestors,
    versions_to_check,
)
from annals.domain.decisions.rules.stored_entities import StoredEntityErrors
from annals.domain.decisions.rules.version_checks import VersionCheck, compatibility_violations, format_check
from annals.domain.errors.problems import (
    CompatibilityUnknown,
    FormatExternal,
    FormatUnknown,
    FormatViolation,
    Problem,
)

_UNKNOWN_REASON: Final = "this registry does not know the format"
_EXTERNAL_REASON: Final = "the document is stored outside of this registry"
NO_RULE: Final = "this registry has no such rule for the format"


def check_documents(changes: ChangeSet) -> None:
    """Checks the Versions that a change contains, and those whose result may have changed with it (ENT-113, ENT-115).

    Raises: FormatUnknown, FormatExternal, FormatViolation, CompatibilityUnknown, CompatibilityViolation;
    ModelComplianceError for stored data that a new model does not allow; ChecksRequired if checks of documents are
    needed first.
    """
    _bind_changed_schemas(changes)
    check_errors = _CheckErrors(changes)
    version_checks = list(_version_checks(changes, check_errors))
    document_checks = frozenset(
        document_check for version_check in version_checks for document_check in version_check.document_checks()
    ) | content_checks(changes)  # in one call, so that a command waits for its checks once
    results = changes.world.check_results(document_checks, changes.documents) if document_checks else {}
    judged_checks = [check for check in version_checks if not _accept_violations(changes, check, results)]
    for version_check in judged_checks:
        try:
            version_check.version.validation_results = version_check.validation_attributes(results)
        except FormatViolation as violation:
            check_errors.add(version_check.version, violation)
    for version, problem in compatibility_violations(judged_checks, results):
        check_errors.add(version, problem)
    check_errors.finish()


def _bind_changed_schemas(changes: ChangeSet) -> None:
    """Binds schemas of Confluent's API to the registry's checks again, once another API changes their documents."""
    for resource in changes.resources.values():
        for version in resource.live_versions():
            if version.entity is not None and version.document != version.entity.document:
                version.confluent = {name: fact for name, fact in version.confluent.items() if name != ACCEPTED}


def _accept_violations(changes: ChangeSet, version_check: VersionCheck, results: CheckResults) -> bool:
    """Whether a Version breaks rules that do not bind it, because Confluent's API has judged it by its own (CSR-810).

    Its attributes then say so.
    """
    version = version_check.version
    if not version.confluent.get(ACCEPTED) and version_check.resource.xid not in changes.accepted_resources:
        return False
    violations = version_check.violation_texts(results)
    if not violations:
        return False
    version.validation_results = violations
    version.confluent = {**version.confluent, ACCEPTED: True}
    return True


class _CheckErrors:
    """Handles the errors of Versions."""

    def __init__(self, changes: ChangeSet) -> None:
        self._has_new_model = changes.model is not changes.world.model
        self._stored_errors = StoredEntityErrors()

    def add(self, version: VersionDraft, problem: Problem) -> None:
        """Raises: the problem, unless a new model causes it for stored data."""
        if not self._has_new_model or version.is_written:
            raise problem
        self._stored_errors.add(version.xid, problem)

    def finish(self) -> None:
        """Raises: ModelComplianceError."""
        self._stored_errors.refuse()


def _version_checks(changes: ChangeSet, check_errors: _CheckErrors) -> Iterator[VersionCheck]:
    """The Versions whose result the change may affect, each with the checks that it needs."""
    enabled_formats = EnabledFormats(capabilities.capabilities_after(changes))
    for resource in changes.resources.values():
        if resource.is_deleted or resource.xref is not None:
            continue
        if not resource.type.validateformat:
            _forget_results(resource)
            continue
        yield from _checks_of_resource(changes, resource, enabled_formats, check_errors)


def _forget_results(resource: ResourceDraft) -> None:
    for version in resource.live_versions():
        version.validation_results = {}


def _checks_of_resource(
    changes: ChangeSet, resource: ResourceDraft, enabled_formats: EnabledFormats, check_errors: _CheckErrors
) -> Iterator[VersionCheck]:
    compatibility = resource.meta.attributes.get("compatibility")
    rule = str(compatibility).lower() if resource.type.validatecompatibility and compatibility is not None else None
    needs_all = _needs_all_checked(changes, resource)
    may_affect_descendants = not resource.only_appends and (resource.needs_completion or affects_descendants(resource))
    if needs_all or (rule is not None and may_affect_descendants):
        changes.load_versions(resource)
    transitive = rule is not None and compares_all_ancestors(rule)
    for version in (
        resource.live_versions()
        if needs_all
        else versions_to_check(resource, is_compared=rule is not None, transitive=transitive)
    ):
        if "format" not in version.attributes:
            version.validation_results = {}
            continue
        try:
            version_check = _version_check(changes, resource, version, rule, enabled_formats)
        except Problem as problem:
            check_errors.add(version, problem)
        else:
            yield version_check


def _needs_all_checked(changes: ChangeSet, resource: ResourceDraft) -> bool:
    """Whether every Version has to be checked again: the model or the compatibility rule changed."""
    previous = resource.meta.before or {}
    is_rule_changed = previous.get("compatibility") != resource.meta.attributes.get("compatibility")
    return changes.model is not changes.world.model or is_rule_changed or resource.needs_recheck


def _version_check(
    changes: ChangeSet,
    resource: ResourceDraft,
    version: VersionDraft,
    rule: str | None,
    enabled_formats: EnabledFormats,
) -> VersionCheck:
    """Raises: FormatUnknown, FormatExternal, CompatibilityUnknown."""
    skip_reason = _why_format_skipped(resource, version, enabled_formats)
    if skip_reason is not None:
        return VersionCheck(resource, version, format_skipped=skip_reason, rule=rule)
    document = format_check(version)
    if rule is None:
        return VersionCheck(resource, version, document)
    rule_skip_reason = _why_rule_skipped(resource, version, rule, enabled_formats)
    ancestors = _compared_versions(changes, resource, version, rule) if rule_skip_reason is None else ()
    for ancestor in ancestors:
        if _why_format_skipped(resource, ancestor, enabled_formats) is not None:
            return VersionCheck(
                resource, version, document, rule=rule, rule_skipped=f'"{ancestor.id}" was not validated'
            )
    return VersionCheck(resource, version, document, None, rule, rule_skip_reason, ancestors)


def _why_format_skipped(resource: ResourceDraft, version: VersionDraft, enabled_formats: EnabledFormats) -> str | None:
    """Why a document cannot be checked; None if it can. Raises: FormatUnknown, FormatExternal."""
    name, is_strict = str(version.attributes.get("format", "")), resource.type.strictvalidation
    if not enabled_formats.is_validated(name):
        if is_strict:
            raise FormatUnknown(version.xid, format=name)
        return _UNKNOWN_REASON
    if version.attributes.get(resource.type.singular + "url") is not None:
        if is_strict:
            raise FormatExternal(version.xid)
        return _EXTERNAL_REASON
    return None


def _why_rule_skipped(
    resource: ResourceDraft, version: VersionDraft, rule: str, enabled_formats: EnabledFormats
) -> str | None:
    """Why a rule cannot be checked; None if it can. Raises: CompatibilityUnknown."""
    if enabled_formats.has_rule(version.attributes["format"], rule):
        return None
    if resource.type.strictvalidation:
        raise CompatibilityUnknown(resource.xid, compat=rule, format=version.attributes["format"])
    return NO_RULE


def _compared_versions(
    changes: ChangeSet, resource: ResourceDraft, version: VersionDraft, rule: str
) -> Sequence[VersionDraft]:
    """The Versions that a Version is compared with: its ancestor, or all its ancestors (ENT-112)."""
    if compares_all_ancestors(rule):
        changes.load_versions(resource)
    else:
        changes.version(resource, version.attributes["ancestorid"])
    return compared_drafts(resource, version, rule)
