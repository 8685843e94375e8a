"""Checks of documents against their `format`, and of Versions against `meta.compatibility`.

All document checks are requested in one call (`World.check_results`). Their results then decide about each Version.
Spec: core 1.0-rc4, "formatvalidated Attribute", "compatibilityvalidated Attribute"; model 1.0-rc4, "validateformat",
"validatecompatibility", "strictvalidation". Rules ENT-110 to 116, SC-10 to 15, SC-30 to 35.
"""

from __future__ import annotations

from collections.abc import Iterator

from annals.domain.confluent.facts import ACCEPTED
from annals.domain.decisions import capabilities
from annals.domain.decisions.capabilities import EnabledFormats
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.drafts import VersionDraft
from annals.domain.decisions.checks.document_checks import CheckResults
from annals.domain.decisions.confluent.schema_ids import content_checks
from annals.domain.decisions.rules.resource_checks import ResourceChecks
from annals.domain.decisions.rules.stored_entities import StoredEntityErrors
from annals.domain.decisions.rules.version_checks import VersionCheck, compatibility_violations
from annals.domain.errors.problems import FormatViolation, Problem


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
            for version in resource.live_versions():
                version.validation_results = {}
            continue
        checks_of_resource = ResourceChecks(changes, resource, enabled_formats)
        for version in checks_of_resource.versions_to_check():
            if "format" not in version.attributes:
                version.validation_results = {}
                continue
            try:
                version_check = checks_of_resource.version_check(version)
            except Problem as problem:
                check_errors.add(version, problem)
            else:
                yield version_check
